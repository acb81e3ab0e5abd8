"""Events: what was announced, what is there, and what is started for it."""
