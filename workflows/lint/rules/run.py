"""RUN: a run.toml of argosy itself; found by its own reader (:mod:`argosy.workflows.cli.lint.description`)."""

from __future__ import annotations

from argosy.workflows.lint.finding import Level
from argosy.workflows.lint.rule import declare

declare("RUN001", Level.ERROR)
declare("RUN002", Level.WARNING)
