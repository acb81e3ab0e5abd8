"""Hostile keys and faults against staging as a whole: from a listing to published files."""
