"""Staged datasets on a volume that outlives one pod: one folder per dataset and share, used by many, evicted by age."""
