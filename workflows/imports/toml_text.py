"""TOML as a person writes it: tables in the order of reading, a comment where something is to be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import tomlkit

Notes: TypeAlias = dict[str, str]
"""Path of a field -> the comment on its line."""
_WIDE: Final = 100


def to_toml(head: Sequence[str], sections: Mapping[str, Mapping[str, Any]], notes: Mapping[str, str]) -> str:
    """The text.

    Args:
        head: lines of the comment at the top.
        sections: table -> its fields; ``""`` for the run's own, which come first.
        notes: path of a field -> the comment on its line.
    """
    blocks = ["\n".join(f"# {_comment(line)}".rstrip() for line in head)]
    for table, fields in sections.items():
        path = table.split(".") if table else []
        blocks.extend(_blocks(path, fields, notes, "[{}]" if table else ""))
    return "\n\n".join(blocks) + "\n"


def _blocks(path: Sequence[str], fields: Mapping[str, Any], notes: Mapping[str, str], head: str) -> Iterator[str]:
    """A table's lines, then the tables below it: what is long is no inline table."""
    lines, below = [], []
    for name, value in fields.items():
        line = _line(name, value, notes.get(".".join([*path, name]), ""))
        if _is_tables(value) or (isinstance(value, dict) and len(line) > _WIDE):
            below.append((name, value))
        else:
            lines.append(line)
    if lines or head.startswith("[["):
        yield "\n".join(([head.format(_path(path))] if head else []) + lines)
    for name, value in below:
        inner = [*path, name]
        if isinstance(value, dict):
            yield from _blocks(inner, value, notes, "[{}]")
        else:
            for each in value:
                yield from _blocks(inner, each, notes, "[[{}]]")


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) and each for each in value)


def _path(path: Sequence[str]) -> str:
    return ".".join(tomlkit.key(name).as_string() for name in path)


def _line(name: str, value: Any, note: str) -> str:
    key, text = tomlkit.key(name).as_string(), _text(value)
    if len(f"{key} = {text}") > _WIDE and isinstance(value, list):
        text = "[\n" + "".join(f"    {_text(each)},\n" for each in value) + "]"
    return f"{key} = {text}{f'  # {_comment(note)}' if note else ''}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        held = ", ".join(f"{tomlkit.key(name).as_string()} = {_text(below)}" for name, below in value.items())
        return f"{{ {held} }}" if held else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(_text(below) for below in value) + "]"
    return str(tomlkit.item(value).as_string())


def _comment(text: str) -> str:
    """A comment ends with its line, and holds no control character."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
