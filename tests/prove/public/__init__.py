"""Jobs that others published: which, their data, and how each becomes a run of argosy's."""
