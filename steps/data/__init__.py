"""Datasets: what lies in one (manifest), who gets which part (plan), how it comes to disk (staging), in which order
it is read (sampler)."""
