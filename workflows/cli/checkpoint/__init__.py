"""``argosy checkpoint``: the verbs on the checkpoints of one run."""
