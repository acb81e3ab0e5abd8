"""What a node knows of a start that failed, besides what its ranks said. Standard library only; what is not there costs
nothing.
"""
