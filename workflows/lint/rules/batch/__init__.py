"""BATCH: the arithmetic of ranks, and of the batch that they share."""
