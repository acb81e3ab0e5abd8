"""What the ranks of a gang get from each other: collectives over a sweep of sizes (``argosy bench-comm``)."""

ENDING = "-bench-comm"
"""Of the name of a run that measures and trains nothing."""
