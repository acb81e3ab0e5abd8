"""RESTART: who starts a failed gang again, how often, and what is left of it when it ends."""
