"""ARGV: what a container's command really says, and what its exit code does."""
