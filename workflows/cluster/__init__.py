"""A cluster, from the author's side: what a namespace needs, what it has, and a run that it runs."""
