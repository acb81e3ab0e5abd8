"""The run.toml that is being written."""

from __future__ import annotations

from typing import Any

import tomlkit


class Draft:
    """Fields of a run by their dotted path; written as TOML with the tables in the order of use."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}

    def put(self, path: str, value: Any) -> None:
        """Set a field: ``put("gang.nnodes", 2)``; the last one wins."""
        self._fields[path] = value

    def get(self, path: str, default: Any = None) -> Any:
        """What a field holds so far."""
        return self._fields.get(path, default)

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

    def toml(self, head: str) -> str:
        """The text, below a comment."""
        document = tomlkit.document()
        for line in head.splitlines():
            document.add(tomlkit.comment(line))
        for key, value in _tables_last(self.data()).items():
            document[key] = tomlkit.item(value)
        return tomlkit.dumps(document)


def _tables_last(data: dict[str, Any]) -> dict[str, Any]:
    """TOML takes every key after a table's head for the table's own."""
    plain = {key: value for key, value in data.items() if not _is_table(value)}
    tables = {
        key: _tables_last(value) if isinstance(value, dict) else value
        for key, value in data.items()
        if _is_table(value)
    }
    return {**plain, **tables}


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))
