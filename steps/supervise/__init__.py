"""Supervision of a gang that somebody else described: their JobSet or Job, unchanged, and none of our code in it."""
