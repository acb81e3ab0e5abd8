"""Which container of a pod counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

_Named = TypeVar("_Named", bound=Mapping[str, Any])


def main_of(containers: Sequence[_Named]) -> _Named:
    """The one named ``main``, else the first (operators prescribe its name); of a spec's, or of a status's."""
    return next((each for each in containers if each.get("name") == "main"), containers[0])


def main_container(pod: Mapping[str, Any]) -> str:
    """Name of the container whose words and end count."""
    return str(main_of(pod["spec"]["containers"])["name"])
