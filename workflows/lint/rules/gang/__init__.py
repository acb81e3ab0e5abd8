"""GANG: all pods of a training or none: queues, pod groups, schedulers, and where the pods may go."""
