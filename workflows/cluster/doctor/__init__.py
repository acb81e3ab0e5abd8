"""What a cluster lacks for a run."""
