"""What the cluster is made of: ``pins.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.cluster.instance import cache_folder

PINS = Path(__file__).with_name("pins.toml")


@dataclass(frozen=True)
class Pin:
    """A module at a version, the programs made from it and the folders of it that the cluster applies."""

    name: str
    module: str
    version: str
    packages: Mapping[str, str]
    manifests: tuple[str, ...] = ()
    minutes: int = 1
    set: Mapping[str, str] = field(default_factory=dict)

    @property
    def cached(self) -> Path:
        """Its folder in the cache: programs, and below ``manifests`` the module's folders."""
        return cache_folder() / "bin" / f"{self.name}-{self.version}"

    def manifest_folder(self, folder: Path) -> Path:
        """Where in a found folder the module's own folders are."""
        return folder / "manifests" / self.name


@cache
def pins() -> dict[str, Pin]:
    """By name."""
    return {name: Pin(name, **row) for name, row in tomllib.loads(PINS.read_text()).items()}
