"""Nodes that may be taken away, and a gang that leaves them. Pure functions over plain YAML values."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.steps.gang.manifest import GangManifest, require


@dataclass(frozen=True)
class Spot:
    """Their ``label`` = ``value``, and ``tolerations`` of their taints; after ``preemptions`` they are left."""

    label: str
    value: str
    tolerations: tuple[Mapping[str, Any], ...]
    preemptions: int


def read_spot(raw: str) -> Spot | None:
    """From the argument; None: no spot nodes were asked for.

    Raises:
        InputError: it is not what the compiler writes.
    """
    if not raw:
        return None
    try:
        found = json.loads(raw)
        return Spot(str(found["label"]), str(found["value"]), tuple(found["tolerations"]), int(found["preemptions"]))
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"spot = {raw!r}: {error!r}; compile the run again") from error


def on_demand(manifest: GangManifest, spot: Spot) -> GangManifest:
    """The same gang, kept off spot nodes: neither drawn to them nor let onto them."""
    documents = tuple(copy.deepcopy(dict(each)) for each in manifest.documents)
    for template in manifest.runtime.templates(manifest.runtime.pods_in(documents)):
        pod = template["spec"]
        selector = {key: value for key, value in pod.pop("nodeSelector", {}).items() if key != spot.label}
        if selector:
            pod["nodeSelector"] = selector
        pod["tolerations"] = [each for each in pod.get("tolerations", []) if each not in spot.tolerations]
        require(pod, {"key": spot.label, "operator": "NotIn", "values": [spot.value]})
    return replace(manifest, documents=documents)
