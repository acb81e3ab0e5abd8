"""``argosy import``: a manifest that somebody has into a ``run.toml``, and an account of every field of it.

Kept, changed (and why), left to the author, or without a place in a run: each value that was written is in one of the
four, because what nobody looked at is found by walking the manifest once more at the end.
"""
