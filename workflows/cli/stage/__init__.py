"""``argosy stage``: bring a dataset to this machine."""
