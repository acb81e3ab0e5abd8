"""YAML, LINT: the file itself, and the comments that suppress. What they find is found while reading."""

from __future__ import annotations

from argosy.workflows.lint.finding import Level
from argosy.workflows.lint.rule import declare

declare("YAML001", Level.ERROR)
declare("YAML002", Level.ERROR)
declare("LINT001", Level.WARNING)
declare("LINT002", Level.WARNING)
declare("LINT003", Level.NOTE)
