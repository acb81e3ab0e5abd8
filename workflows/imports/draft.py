"""The run.toml that is being written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.workflows.imports.toml_text import Notes, to_toml
from argosy.workflows.manifests.node import Node

TABLES: Final = ("", "gang", "gang.resources", "gang.pod", "storage", "dataset", "checkpoint", "retry", "deadlines")
"""In the order of reading; ``env`` comes last, because it is the longest."""

_ORDER: Final = (
    *("name", "image", "working_dir", "script", "module", "args", "code", "secrets"),
    *("nnodes", "nproc_per_node", "runtime", "launcher", "placement", "queue", "queue_priority", "shm_size"),
    *("priority_class", "service_account", "node_selector"),
    *("gpu", "gpu_resource", "cpu", "memory", "extended", "mode", "path"),
)


def _place(path: str) -> int:
    """Short fields first, as they are read; tables below them."""
    name = path.rpartition(".")[2]
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


class Draft:
    """Fields of a run by their dotted path, with the values of the manifest that they come from."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._origins: dict[tuple[str, str], Node] = {}
        self._notes: Notes = {}

    def put(self, path: str, value: Any, node: Node | None = None) -> None:
        """Set a field: ``put("gang.nnodes", 2)``; the last one wins."""
        self._fields[path] = value
        if node is not None:
            self._origins[path, ""] = node

    def put_item(self, path: str, key: str, value: Any, node: Node) -> None:
        """Set one entry of a field that is a table: ``put_item("env", "A", "1", node)``."""
        self._fields.setdefault(path, {})[key] = value
        self._origins[path, key] = node

    def append(self, path: str, value: Any, node: Node) -> None:
        """Add to a field that is a list."""
        held = self._fields.setdefault(path, [])
        self._origins[path, str(len(held))] = node
        held.append(value)

    def note(self, path: str, text: str) -> None:
        """A comment on a field's line."""
        self._notes[path] = text

    def has_note(self, path: str) -> bool:
        """Whether a field has a comment."""
        return path in self._notes

    def get(self, path: str, default: Any = None) -> Any:
        """What a field holds so far."""
        return self._fields.get(path, default)

    def drop(self, path: str) -> None:
        """Take a field out again."""
        self._fields.pop(path, None)
        self._notes.pop(path, None)

    def take_out(self, place: Sequence[str]) -> tuple[str, Node | None] | None:
        """Take out what stands at a place within the run: an entry of a list or a table, else the field.

        Returns:
            (what it was, the value of the manifest that it came from); None when nothing of the draft is there.
        """
        for length in range(len(place), 0, -1):
            path = ".".join(place[:length])
            if path not in self._fields:
                continue
            held, rest = self._fields[path], place[length:]
            key = rest[0] if rest else ""
            node = self._origins.get((path, key)) or self._origins.get((path, ""))
            if isinstance(held, dict) and key in held:
                del held[key]
            elif isinstance(held, list) and key.isdigit() and int(key) < len(held) and len(held) > 1:
                self._remove(path, held, int(key))
            else:
                self.drop(path)
            if held == {}:
                self.drop(path)
            return (f"{path}.{key}" if key else path), node
        return None

    def replace(self, path: str, index: int, value: Any) -> Node | None:
        """Put something else in an entry's place; the value of the manifest that the entry came from."""
        held = self._fields.get(path, [])
        if index >= len(held):
            return None
        held[index] = value
        return self._origins.get((path, str(index)))

    def _remove(self, path: str, held: list[Any], index: int) -> None:
        del held[index]
        for later in range(index, len(held)):
            following = self._origins.pop((path, str(later + 1)), None)
            if following is not None:
                self._origins[path, str(later)] = following

    def data(self) -> dict[str, Any]:
        """The run as nested tables, as :class:`argosy.TrainingRun` takes them."""
        found: dict[str, Any] = {}
        for path, value in self._fields.items():
            *tables, name = path.split(".")
            place = found
            for table in tables:
                place = place.setdefault(table, {})
            place[name] = value
        return found

    def toml(self, head: Sequence[str]) -> str:
        """The text, below a comment."""
        sections: dict[str, dict[str, Any]] = {table: {} for table in TABLES}
        for path, value in sorted(self._fields.items(), key=lambda each: _place(each[0])):
            table, _, name = path.rpartition(".")
            if path == "env":
                continue
            sections.setdefault(table, {})[name] = value
        if "env" in self._fields:
            sections["env"] = self._fields["env"]
        return to_toml(head, sections, self._notes)
