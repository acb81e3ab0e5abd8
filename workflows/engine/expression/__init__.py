"""Expressions of ``{{=...}}``, retry strategies and outputs: the part of expr-lang that Argo's users write."""
