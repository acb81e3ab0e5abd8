"""A pod on one machine: a tree of processes with a root folder, mounts, a lifeline and an end that is certain."""
