"""Manifests as they are written: documents, nodes with their places, and what the objects in them mean."""
