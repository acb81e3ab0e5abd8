"""How long a training stands still after a fault, beside torchrun's own restart."""
