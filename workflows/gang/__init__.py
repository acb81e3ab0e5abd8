"""The object that makes a gang's pods, rendered at compile time."""
