"""SEC: what a pod may do to its node, secrets, images, and rights in the cluster."""
