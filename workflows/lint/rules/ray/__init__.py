"""RAY: clusters of Ray, and the jobs that bring one with them."""
