"""Training that is the same to the bit for any sequence of kills and any number of ranks."""
