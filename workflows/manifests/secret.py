"""Which names and values are secrets."""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final = re.compile(
    r"(?:.*_)?(?:PASSWORD|PASSWD|SECRET|SECRET_KEY|SECRET_ACCESS_KEY|API_KEY|APIKEY|WANDB_KEY|TOKEN|AUTH_TOKEN|PRIVATE_KEY"
    r"|CREDENTIALS)"
)
_NOT_SECRET: Final = re.compile(
    r"(?:.*_)?(?:PAD|EOS|BOS|UNK|MASK|SEP|CLS|STOP|SPECIAL|MAX|NUM|PER|IGNORE|IMAGE)_TOKEN", re.IGNORECASE
)
# Shapes of live credentials, each by its issuer's own prefix:
# https://docs.github.com/en/code-security/secret-scanning/introduction/supported-secret-scanning-patterns
_SHAPES: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[A-Z0-9]{16}|hf_[A-Za-z0-9]{30,}|gh[pousr]_[A-Za-z0-9]{36,}|glpat-[\w-]{20,}"
    r"|xox[abprs]-[\w-]{20,}|sk-[A-Za-z0-9_-]{32,}|nvapi-[\w-]{40,}|AIza[\w-]{35})(?![A-Za-z0-9])"
    r"|-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----|(?<=wandb login )[0-9a-f]{40}"
)
# Words, placeholders and what everyone tries first (minio123) keep nothing from anyone.
_GENERATED: Final = re.compile(r"(?=\D*\d+\D+\d)(?=.*[A-Za-z])[^\s/$<{][^\s<{$]{7,}")


def secret_name(name: str) -> bool:
    """Whether a variable or option of this name holds a secret: ``HF_TOKEN``, ``--wandb-api-key``."""
    plain = name.strip("-").replace("-", "_").upper()
    return _NAMES.fullmatch(plain) is not None and _NOT_SECRET.fullmatch(plain) is None


def secret_value(value: str) -> str:
    """The first live credential in a text; ``""`` when there is none."""
    found = _SHAPES.search(value)
    return found.group() if found is not None else ""


def shown(secret: str) -> str:
    """As much of a credential as a log may hold: what all of its kind begin with."""
    return f"{secret[:4]}…"


def generated(value: str | None) -> bool:
    """Whether a value has the form of one that a machine made: letters between digits, eight characters or more."""
    return value is not None and _GENERATED.fullmatch(value) is not None
