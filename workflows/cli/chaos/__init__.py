"""``argosy chaos``: real faults on a script of the user's, drawn, carried out and judged."""
