"""A training's state as files and back: tree, tensors, random generators. No store, no processes, no pickle."""
