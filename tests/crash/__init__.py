"""Crash points: workloads, faults at each of their operations or requests, and the oracle that judges what is left."""
