"""REND: how the ranks of a gang find each other."""
