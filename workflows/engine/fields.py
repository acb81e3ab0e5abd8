"""Walk a manifest along the schema: every field has to be one we know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.workflows.engine.schema import ANYTHING, FLAG, SCALAR, TEXT, WHOLE, WORKFLOW, Ignore, ListOf, MapOf, Refuse

_KINDS: dict[str, tuple[type, ...]] = {SCALAR: (str, int, float), TEXT: (str,), WHOLE: (int, str), FLAG: (bool,)}


@dataclass(frozen=True)
class Ignored:
    """A field that is there and means nothing on one machine."""

    path: str
    reason: str


@dataclass
class FieldWalk:
    """What a walk found: fields that are not built in, refused or of the wrong kind, and fields that are ignored."""

    problems: list[str] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)

    def manifest(self, manifest: Mapping[str, Any], name: str) -> None:
        """Walk one Workflow or WorkflowTemplate; ``name`` stands before its paths ("" for none)."""
        self._value(manifest, WORKFLOW, name)

    def _value(self, value: Any, kind: Any, path: str) -> None:
        if isinstance(kind, Refuse):
            if value not in (None, False, [], {}, ""):
                self.problems.append(f"{path}: not supported by the local engine: {kind.reason}")
        elif value is None:
            return
        elif isinstance(kind, Ignore):
            self.ignored.append(Ignored(path, kind.reason))
        elif isinstance(kind, ListOf):
            self._list(value, kind, path)
        elif isinstance(kind, MapOf | dict):
            self._map(value, kind, path)
        elif kind != ANYTHING and (not isinstance(value, _KINDS[kind]) or (kind == WHOLE and isinstance(value, bool))):
            hint = "; put it in quotes" if kind == TEXT and isinstance(value, bool | int | float) else ""
            self.problems.append(f"{path}: {value!r} is not {kind}{hint}")

    def _list(self, value: Any, kind: ListOf, path: str) -> None:
        if not isinstance(value, list):
            self.problems.append(f"{path}: {value!r} is not a list")
            return
        for index, item in enumerate(value):
            if item is None and kind.item != ANYTHING:
                self.problems.append(f"{path}[{index}]: is empty")
            self._value(item, kind.item, f"{path}[{index}]")

    def _map(self, value: Any, kind: MapOf | dict[str, Any], path: str) -> None:
        if not isinstance(value, dict):
            self.problems.append(f"{path}: {value!r} is not a map")
            return
        for key, item in value.items():
            below = f"{path}.{key}" if path else str(key)
            if isinstance(kind, MapOf):
                self._value(item, kind.value, below)
            elif key in kind:
                self._value(item, kind[key], below)
            else:
                self.problems.append(f"{below}: not built into the local engine")
