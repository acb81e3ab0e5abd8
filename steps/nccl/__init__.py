"""NCCL: what its environment asks for and what its log says was used."""
