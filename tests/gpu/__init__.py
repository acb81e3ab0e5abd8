"""Everything that a GPU must show: ``make gpu``, docs/gpu.md."""
