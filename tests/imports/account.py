"""What ``argosy import --json`` says, and a walk over the values of the manifest that it speaks of."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml


class Account:
    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record
        self.run: dict[str, Any] = tomllib.loads(record["toml"])
        self.entries: list[dict[str, Any]] = record["account"]

    def fates_in(self, path: str, document: int = 0) -> set[str]:
        """What became of the value at a path: what is said of it, else of the nearest value above it."""
        return {each["fate"] for each in _nearest(path, document, self._said())}

    def text_of(self, path: str, document: int) -> str:
        """All that is said of a value, as one text."""
        return " ".join(f"{each['path']} {each['why']}" for each in _nearest(path, document, self._said()))

    def why(self, text: str) -> str:
        """The reasons that hold this text, each on a line."""
        lines = [
            f"{each['fate']} {each['part'] or each['path']}: {each['into']}: {each['why']}" for each in self.entries
        ]
        return "\n".join(line for line in lines if text in line)

    def unspoken(self, file: Path) -> list[str]:
        """Values of the file of which nothing, or several things, are said."""
        return self.unspoken_in(list(yaml.safe_load_all(file.read_text())))

    def unspoken_in(self, documents: list[Any]) -> list[str]:
        """The same of documents."""
        said = self._said()
        wrong = []
        for number, document in enumerate(documents):
            for path, _ in leaves(document):
                found = _nearest(path, number, said)
                parts: defaultdict[str, set[str]] = defaultdict(set)
                for each in found:
                    parts[each["part"]].add(each["fate"])
                several = any(len(fates) > 1 for fates in parts.values()) or ("" in parts and len(parts) > 1)
                if not found or several:
                    wrong.append(f"{number}: {path}: {[(each['fate'], each['part']) for each in found]}")
        return wrong

    def _said(self) -> dict[tuple[int, str], list[dict[str, Any]]]:
        said = defaultdict(list)
        for each in self.entries:
            if not each["advice"]:
                said[each["document"], each["path"]].append(each)
        return said


def _nearest(path: str, document: int, said: dict[tuple[int, str], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    while True:
        if (document, path) in said:
            return said[document, path]
        if not path:
            return []
        cut = max(path.rfind("."), path.rfind("["))
        path = path[:cut] if cut > 0 else ""


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of everything below that is not null and holds nothing itself."""
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from leaves(below, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for index, below in enumerate(value):
            yield from leaves(below, f"{path}[{index}]")
    elif value is not None:
        yield path, value
