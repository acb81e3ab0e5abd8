"""What runs in a pod: one module per step, started as ``python -m argosy.steps.NAME``."""
