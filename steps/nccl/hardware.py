"""Which GPU a pod will get, as far as the node labels that it asks for say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# Instance families by vendor: https://aws.amazon.com/ec2/instance-types/#Accelerated_Computing,
# https://cloud.google.com/compute/docs/gpus, https://learn.microsoft.com/azure/virtual-machines/sizes/overview,
# https://docs.oracle.com/iaas/Content/Compute/References/computeshapes.htm#bm-gpu
_INSTANCES: Final = (
    (re.compile(r"(ml\.)?p4de?\."), "A100"),
    (re.compile(r"(ml\.)?p5\."), "H100"),
    (re.compile(r"(ml\.)?p5en?\."), "H200"),
    (re.compile(r"(ml\.)?p6-b200\."), "B200"),
    (re.compile(r"(ml\.)?p6e-gb200\."), "GB200"),
    (re.compile(r"(ml\.)?g5\."), "A10G"),
    (re.compile(r"(ml\.)?g6e?\."), "L40S"),
    (re.compile(r"(ml\.)?g4dn\."), "T4"),
    (re.compile(r"(ml\.)?p3(dn)?\."), "V100"),
    (re.compile(r"a2-(high|mega|ultra)gpu"), "A100"),
    (re.compile(r"a3-(high|mega|edge)gpu"), "H100"),
    (re.compile(r"a3-ultragpu"), "H200"),
    (re.compile(r"a4-highgpu"), "B200"),
    (re.compile(r"a4x-"), "GB200"),
    (re.compile(r"g2-standard"), "L4"),
)
_MODEL: Final = re.compile(
    r"(?<![A-Za-z0-9])(GB?[23]00|GB?H?200|B[123]00|H20|H[128]00|A[138]00|A800|A10G?|A16|A30|A40|L4|L40S?|T4|V100)(?![0-9])",
    re.IGNORECASE,
)
_KEYS: Final = re.compile(r"gpu|accelerator|instance-type|machine|shape|node-?pool|sku|family", re.IGNORECASE)


def gpu_model(labels: Iterable[tuple[str, str]]) -> str | None:
    """``H100``, from the node labels (key, value) that a pod asks for; None when none of them names a model."""
    for key, value in labels:
        for pattern, model in _INSTANCES:
            if pattern.match(value):
                return model
        found = _MODEL.search(value.replace("_", "-")) if _KEYS.search(key) else None
        if found is not None:
            return found[1].upper()
    return None
