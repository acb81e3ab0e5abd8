"""What a training script gives away about itself, read from its syntax tree; it is never run."""
