"""Fabric profiles: what they render, what they refuse, and whose word it is."""
