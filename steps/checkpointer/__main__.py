"""``python -m argosy.steps.checkpointer``: the writer process of one rank."""

from argosy.steps.checkpointer.background import main

main()
