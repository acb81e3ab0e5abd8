"""The host of a gang: what the supervisor asks of whoever runs the pods, and who can do it."""
