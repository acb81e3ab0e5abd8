"""Exact training under kills: a warm parent that forks ranks (zygote), the training they run, and who kills them."""
