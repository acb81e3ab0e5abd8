"""``argosy lint``: the verb, which rules are asked for, and how findings are shown."""
