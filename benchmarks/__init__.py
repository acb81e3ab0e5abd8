"""Paired timings against peers: ``make bench``. Nothing here is asserted in a test; figures belong to a machine."""
