"""Saving and resuming 1.2 GB on two ranks, ours beside torch, DCP and DeepSpeed."""
