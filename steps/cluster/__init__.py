"""The Kubernetes API, for everybody here who speaks to it: one client, plain dictionaries in and out."""
