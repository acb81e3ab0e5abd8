"""A run's trigger as manifests: what compile --trigger prints and install --trigger applies."""
