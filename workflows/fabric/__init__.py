"""Fabric profiles: what a network between GPUs needs of a pod, as data with sources; the default sets nothing."""
