"""Runs from Python: a description with verbs, and a handle on what it started. For scripts and notebooks."""
