"""ARGO: what Argo Workflows and Argo Events refuse, or do otherwise than the manifest seems to say."""
