"""What is said about a profile or a parameter that cannot be used."""

from __future__ import annotations


class FabricProblem(ValueError):
    """A rule is broken: ``field`` is relative to ``[gang]``, ``value`` is what stands there."""

    def __init__(self, rule: str, remedy: str, *, field: str, value: object) -> None:
        super().__init__(rule)
        self.rule = rule
        self.remedy = remedy
        self.field = field
        self.value = value
