"""STORE: volumes, claims, and where checkpoints go."""
