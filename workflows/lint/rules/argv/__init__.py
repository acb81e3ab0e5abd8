"""ARGV: what a container's command really says, and what its exit code does."""

from __future__ import annotations

from argosy.workflows.lint.rules.argv import endings, env, launchers, lines, shells, start, variables, words

__all__ = ["endings", "env", "launchers", "lines", "shells", "start", "variables", "words"]
