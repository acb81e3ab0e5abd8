"""Kubernetes' quantities as numbers. https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/"""

from __future__ import annotations

import re
from typing import Final

_QUANTITY: Final = re.compile(r"([+-]?\d+(?:\.\d*)?|\.\d+)(?:([eE][+-]?\d+)|(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|n|u)?)")
_SCALE: Final = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_MOST: Final = float(2**63 - 1)
"""What Kubernetes makes of a larger one."""
_BINARY: Final = {unit: 1024.0**power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}


def quantity(text: str) -> float | None:
    """``"64Gi"`` as 68719476736.0; None for what is no quantity."""
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        return None
    number, exponent, unit = found.groups()
    value = float(number + (exponent or "")) * ({**_SCALE, **_BINARY}[unit] if unit else 1.0)
    return max(-_MOST, min(value, _MOST))
