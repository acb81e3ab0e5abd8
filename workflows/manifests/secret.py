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
_TO_REPLACE: Final = re.compile(
    r"__\w+__|[A-Z]+(?:_[A-Z]+)+|TOKEN|KEY|SECRET|[Xx*.-]+|(?i:your[-_].*)"
    r"|(?i:(?:(?:change|me|my|your|some|this|test|demo|example|sample|local|dev|default|guest|user|root|admin|minio|mysql"
    r"|postgres|redis|mlflow|grafana|airflow|db|api|access|secret|pass|password|token|key|value|string|here)"
    r"[-_ .@!]*(?:\d{1,4}[-_ .@!]*)?)+)"
)  # HF_TOKEN: "YOUR_HF_TOKEN", "minio123": what everyone tries first keeps nothing from anyone
_OBJECT: Final = re.compile(r"[a-z.-]+-(?:secrets?|creds?|credentials|tokens?)")
"""What a Secret is called, of which an option tells: ``--secret webhook-secret``."""
_WORDS: Final = re.compile(r"[a-z]+(?:-[a-z]+)+")
_EMPTY: Final = re.compile(
    r"true|false|yes|no|none|null|0|1|empty|dummy|unused|no[tn]?[-_ ]?(needed|used|required|set|key)|n/?a|", re.I
)


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


def names_object(option: str, value: str) -> bool:
    """Whether an option tells which Secret to use: ``--server-tls-secret=server-tls``, words with hyphens."""
    return option.endswith("-secret") and _WORDS.fullmatch(value) is not None


def literal(value: str | None) -> bool:
    """Whether the value of something that should be secret stands in the file."""
    empty = value is None or _EMPTY.fullmatch(value) is not None or value.startswith("/")
    return not empty and _TO_REPLACE.fullmatch(value or "") is None and _OBJECT.fullmatch(value or "") is None
