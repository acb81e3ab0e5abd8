"""Bytes from a store into files: pieces fetched by worker processes, verified as they arrive."""
