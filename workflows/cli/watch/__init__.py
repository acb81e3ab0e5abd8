"""``argosy watch``: new data start runs, without a cluster or from beside it."""
