"""The environment that NCCL and its neighbours will find, and where each value comes from.

NCCL reads files for what the environment leaves unset: ``NCCL_CONF_FILE``, or else ``~/.nccl.conf`` of the passwd
database's home, then ``/etc/nccl.conf`` (src/misc/param.cc). torch, libfabric, UCX and gloo read no such files, but
NCCL puts everything of them into the process's environment, so that they count from its first use on.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

POD: Final = "pod"
PREFIXES: Final = ("NCCL_", "OFI_NCCL_", "TORCH_NCCL_", "TORCH_FR_", "GLOO_", "FI_", "UCX_")
_SECRET: Final = re.compile(r"(?i)token|secret|passw|_key$|credential")
SITE_FILE: Final = "/etc/nccl.conf"


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable; ``source`` is :data:`POD` or the file it stands in."""

    name: str
    value: str
    source: str

    def __str__(self) -> str:
        return f"{self.name}={self.value} ({self.source})"


def effective_environment(environ: Mapping[str, str], files: Sequence[Path] | None = None) -> list[Variable]:
    """The variables that matter, by name; ``files`` in the order in which the first one wins (default: NCCL's own)."""
    found = {name: Variable(name, value, POD) for name, value in environ.items()}
    for path in conf_files(environ) if files is None else files:
        for name, value in _assignments(path):
            found.setdefault(name, Variable(name, value, str(path)))
    return [_shown(found[name]) for name in sorted(found) if name.startswith(PREFIXES)]


def conf_files(environ: Mapping[str, str]) -> list[Path]:
    """The files that NCCL reads, the one that wins first."""
    return [Path(environ.get("NCCL_CONF_FILE") or f"{_home()}/.nccl.conf"), Path(SITE_FILE)]


def _home() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a uid without an entry, as OpenShift gives: NCCL finds no file either
        return "/nonexistent"


def _assignments(path: Path) -> Iterator[tuple[str, str]]:
    """As NCCL reads them: no quotes, no spaces taken away, ``#`` only at the beginning of a line."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.split("\n"):
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            yield name[:1023], value[:1023]


def _shown(variable: Variable) -> Variable:
    return Variable(variable.name, "***", variable.source) if _SECRET.search(variable.name) else variable
