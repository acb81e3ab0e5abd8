"""Pods that failed in a gang with spares, made again on this machine as a Job makes them again on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def replaced(rows: Sequence[Row], failed: set[str], free: Sequence[str]) -> list[Row]:
    """The gang's pods, with another for each that ``failed`` and has none yet, while a node is ``free`` for it.

    A node that holds a pod of the gang takes no second one.
    """
    held = {row["node"] for row in rows if row["name"] not in failed}
    again = {row.get("instead_of") for row in rows}
    missing = [row for row in rows if row["name"] in failed - again]
    places = [node for node in free if node not in held]
    found = list(rows)
    for row, node in zip(missing, places, strict=False):
        first = row.get("first", row["name"])
        name = f"{first}-{len(found)}"
        token = row["token"].removesuffix(f"{row['name']}/") + f"{name}/"
        found.append({**row, "name": name, "node": node, "token": token, "first": first, "instead_of": row["name"]})
    return found
