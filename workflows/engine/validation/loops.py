"""``withItems``, ``withParam`` and ``withSequence``: one of them, and what ``{{item}}`` may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.workflows.engine.validation.refusal import Refused
from argosy.workflows.engine.validation.variables import ANY_ITEM


def is_aggregate(holder: Mapping[str, Any]) -> bool:
    """Whether outputs of a step or task are lists that others may refer to; Argo forgets those of a sequence."""
    return bool(holder.get("withItems")) or bool(holder.get("withParam"))


def is_loop(holder: Mapping[str, Any]) -> bool:
    """Whether a step or task stands for several."""
    return is_aggregate(holder) or holder.get("withSequence") is not None


def item_names(holder: Mapping[str, Any], where: str) -> Iterator[str]:
    """The names that begin with ``item`` and have a value in a step or task.

    Raises:
        Refused: two loops at once, or a sequence of two lengths.
    """
    loops = [key for key in ("withItems", "withParam") if holder.get(key)]
    sequence = holder.get("withSequence")
    if sequence is not None:
        loops.append("withSequence")
    if len(loops) > 1:
        raise Refused(
            f"{where}: only one of withItems, withParam, withSequence can be specified; it has {', '.join(loops)}"
        )
    if loops == ["withItems"]:
        for item in holder["withItems"]:
            if isinstance(item, dict):
                yield from (f"item.{key}" for key in item)
            elif isinstance(item, list):
                yield from (f"item.[{index}]" for index in range(len(item)))
            else:
                yield "item"
    elif loops == ["withParam"]:
        yield from ("item", ANY_ITEM)
    elif sequence is not None:
        if sequence.get("count") is not None and sequence.get("end") is not None:
            raise Refused(f"{where}.withSequence: only one of count or end can be defined")
        yield "item"
