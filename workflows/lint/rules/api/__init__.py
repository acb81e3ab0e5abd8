"""API: what the API server, a CRD or an operator's webhook takes: versions, fields, types, names."""

from __future__ import annotations

from argosy.workflows.lint.rules.api import fields, names, objects, operators, values, versions

__all__ = ["fields", "names", "objects", "operators", "values", "versions"]
