"""Recognise a credential before it is written into YAML that everybody with access to the cluster can read."""

from __future__ import annotations

import re

_NAME_PARTS = frozenset({"PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "APIKEY", "CREDENTIAL", "CREDENTIALS"})
_NAME_PAIRS = re.compile(r"(API|ACCESS|PRIVATE|SIGNING|ENCRYPTION)_?KEY(_ID)?(_|$)")
_VALUES = re.compile(
    r"AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|\bhf_[A-Za-z0-9]{20,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bsk-[A-Za-z0-9_-]{20,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bglpat-[A-Za-z0-9_-]{16,}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.|[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s@]+@"
)
_HARMLESS = re.compile(r"(?i)|true|false|yes|no|on|off|[-+]?\d{1,9}(\.\d+)?|(/[\w.-]+)+|<[^>]*>")
"""Switches, small numbers, paths of mounted files, special tokens of a tokenizer."""


def named_like_secret(name: str) -> bool:
    """Whether an environment variable's name says that it holds a credential."""
    upper = name.upper()
    return not _NAME_PARTS.isdisjoint(upper.split("_")) or _NAME_PAIRS.search(upper) is not None


def looks_secret(name: str, value: str) -> bool:
    """Whether name and value together look like a credential."""
    if holds_secret(value):
        return True
    return named_like_secret(name) and _HARMLESS.fullmatch(value) is None


def holds_secret(value: str) -> bool:
    """Whether the value alone has the shape of a known kind of credential."""
    return _VALUES.search(value) is not None
