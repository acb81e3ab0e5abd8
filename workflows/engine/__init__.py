"""The local engine: runs the YAML that ``argo submit`` takes on one machine, without a cluster."""
