"""``$(NAME)`` in a container's command, arguments and environment, as the kubelet replaces it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(\$|\(([^()]*)\))")


def expanded(text: str, known: Mapping[str, str]) -> str:
    """``$(NAME)`` replaced where the container has that variable; ``$$`` stands for one dollar sign."""
    if "$" not in text:
        return text
    return _REFERENCE.sub(lambda match: "$" if match[1] == "$" else known.get(match[2], match[0]), text)
