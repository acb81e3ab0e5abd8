"""One node of a gang: check in, data, code, torchrun, ranks, reports."""
