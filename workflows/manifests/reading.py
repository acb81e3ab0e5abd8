"""Files into documents; what cannot be read becomes a finding, so that one bad file does not hide the others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import yaml

from argosy.steps.contract.errors import InputError
from argosy.workflows.manifests.composing import TooMuch, children, compose
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node, Origin, unquoted
from argosy.workflows.manifests.unreadable import Unreadable, not_yaml, what_else

SUFFIXES: Final = (".yaml", ".yml", ".json")
LARGEST: Final = 8 << 20
"""Bytes of one file: a CRD is below 2 MiB, and whoever lints a dump of a cluster splits it."""
_OF_OBJECTS: Final = ("metadata", "spec", "resources", "patches")
"""A chart's values may have a kind, too; a Kustomization may have no version."""


@dataclass(slots=True)
class SourceFile:
    """A file as it was read.

    Args:
        name: as it was given; ``<stdin>`` for the standard input.
        text: the whole text.
        roots: the YAML documents in it.
        documents: the objects in it, nested ones after their host.
        unreadable: what could not be read.
    """

    name: str
    text: str
    roots: list[Node] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)


def read_file(path: Path, name: str = "") -> SourceFile:
    """Read one file, and no more of it than :data:`LARGEST` allows.

    Raises:
        InputError: it cannot be opened.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; name a file that can be read") from error
    return read_text(data, name or str(path))


def read_text(data: bytes, name: str) -> SourceFile:
    """Read a file's bytes; whatever is wrong with them is in ``unreadable``."""
    if len(data) > LARGEST:
        message = f"the file has more than {LARGEST >> 20} MiB"
        return SourceFile(name, "", unreadable=[Unreadable("YAML001", 1, 1, message, "split it")])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        bad = Unreadable("YAML001", line, 1, f"byte {data[error.start]:#04x} is not UTF-8", "save the file as UTF-8")
        return SourceFile(name, "", unreadable=[bad])
    source = SourceFile(name, text)
    _read_documents(source)
    return source


def _read_documents(source: SourceFile) -> None:
    origin, wrong = Origin(source.name), list[Unreadable]()
    try:
        for index, composed in enumerate(compose(source.text)):
            if isinstance(composed, TooMuch):
                source.unreadable.append(Unreadable("YAML001", composed.line, 1, composed.message, composed.remedy))
                continue
            root = Node(composed, origin)
            source.roots.append(root)
            wrong.extend(_wrong_keys(composed, set()))
            source.documents.extend(_objects(root, index, source.text))
    except yaml.YAMLError as error:
        wrong.append(not_yaml(error, source.text))
    first = next((each for each in wrong if each.rule == "YAML001"), None)
    if first is not None:
        named = Path(source.name).suffix in ("", *SUFFIXES)
        wrong = [other] if (other := what_else(first, source.text, named=named)) else wrong
    source.unreadable.extend(wrong)


def _objects(root: Node, index: int, text: str) -> Iterator[Document]:
    if root["kind"].text.endswith("List") and root["items"].is_list:
        for item in root["items"]:
            yield from _objects(item, index, text)
    elif root["apiVersion"] or any(root["kind"] and root[key] for key in _OF_OBJECTS):
        document = Document(root, index)
        yield document
        yield from _nested(document, text)


def _nested(host: Document, text: str) -> Iterator[Document]:
    """Objects that an object creates: a resource template's manifest, a plugin's, a raw artifact, a Sensor's source."""
    if host.group != "argoproj.io":
        return
    for node in host.root.walk():
        if _is_manifest(node):
            yield from _manifest(node, host, text)
        elif node.key == "plugin":  # an executor's: github.com/argoproj-labs/argo-executor-plugin-samples
            objects = (each for each in node.walk() if each["apiVersion"] and each["kind"])
            yield from (Document(each, host.index, host) for each in objects)
        elif _is_made(node, host):
            inner = Document(node, host.index, host)
            yield inner
            yield from _nested(inner, text)


def _is_manifest(node: Node) -> bool:
    holder = node.parent
    if holder is None or not node.is_string:
        return False
    raw = node.key == "data" and holder.key == "raw" and "kind:" in node.text and "apiVersion:" in node.text
    # What is got, deleted or patched is named, not described.
    return raw or (node.key == "manifest" and holder["action"].text in ("create", "apply", "replace"))


def _is_made(node: Node, host: Document) -> bool:
    """Whether a Sensor's trigger makes the object: submit-from, suspend and their like name one that is there."""
    source = node.parent
    if source is None or source.parent is None or (source.key, node.key, host.kind) != ("source", "resource", "Sensor"):
        return False
    return source.parent["operation"].text in ("", "create", "patch", "submit", "update")


def _manifest(node: Node, host: Document, file_text: str) -> Iterator[Document]:
    """A block of text keeps its lines, so what stands in it has a place; Argo's bare ``{{x}}`` is no YAML."""
    line, column = node.line - 1, 0
    if getattr(node.yaml, "style", None) in ("|", ">"):
        line += 1
        column = _indent(file_text, line)
    text = re.sub(r"(?<![\"'\w}])\{\{[^{}\n]*\}\}(?![\"'\w])", lambda found: "x" * len(found.group()), node.text)
    origin = Origin(node.origin.file, line, column, editable=False)
    try:
        for composed in compose(text):
            if isinstance(composed, yaml.Node):
                root = Node(composed, origin)
                if root["kind"]:
                    yield Document(root, host.index, host)
    except yaml.YAMLError:
        return


def _indent(text: str, line: int) -> int:
    """Spaces before the first line of a block that begins after ``line`` lines."""
    found = next((each for each in text.split("\n")[line:] if each.strip()), "")
    return len(found) - len(found.lstrip(" "))


def _wrong_keys(node: yaml.Node, seen: set[int]) -> Iterator[Unreadable]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                yield Unreadable(
                    *("YAML001", key.start_mark.line + 1, key.start_mark.column + 1),
                    "a mapping or a list as a key: so YAML reads {{ … }} without quotes",
                    'quote it ("{{ … }}")',
                )
        for _, value in node.value:
            if isinstance(value, yaml.MappingNode) and unquoted(value):
                place = ("YAML001", value.start_mark.line + 1, value.start_mark.column + 1)
                what = "{x} without quotes, which YAML reads as a mapping"
                yield Unreadable(*place, what, "write the value", harmless=True)
        yield from _twice(node)
    for each in children(node):
        yield from _wrong_keys(each, seen)


def _twice(node: yaml.MappingNode) -> Iterator[Unreadable]:
    """One finding for all keys of a mapping that stand in it more than once, at the worst of them."""
    firsts: dict[str, tuple[int, yaml.Node]] = {}
    found: list[tuple[str, Unreadable]] = []
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else ""
        if name and name != "<<" and name in firsts:
            mark, (line, first) = key.start_mark, firsts[name]
            kept = _holds(value, first)
            overridden = not isinstance(first, yaml.MappingNode) and all(map(_is_scalar, children(first)))
            said = f"the key {name!r} stands twice in one mapping, first on line {line}"
            why = ", and the last says all that the first does" if kept else ": what the first one says is lost"
            remedy = "keep one: Kubernetes takes the last or refuses the file"
            place = ("YAML002", mark.line + 1, mark.column + 1)
            found.append((name, Unreadable(*place, said + why, remedy, harmless=overridden, lossless=kept)))
        firsts[name] = (key.start_mark.line + 1, value)
    if not found:
        return
    name, worst = min(found, key=lambda each: (each[1].lossless, each[1].harmless))
    others = sorted({repr(other) for other, _ in found} - {repr(name)})
    message = worst.message + (f" (so do {', '.join(others[:8])})" if others else "")
    if {"apiVersion", "kind"} <= {each for each, _ in found}:  # an object is lost, whoever reads the file
        yield replace(worst, message=message, remedy="write --- between two objects", harmless=False)
    else:
        yield replace(worst, message=message, harmless=True)


_FEW: Final = 50  # items of a list that are looked for one by one in another


def _holds(whole: yaml.Node, part: yaml.Node) -> bool:
    """Whether one says all that the other does, so that nothing is lost when it takes the other's place."""
    if not part.value and not _is_scalar(part):
        return True
    if isinstance(whole, yaml.MappingNode) and isinstance(part, yaml.MappingNode):
        said = {str(key.value): value for key, value in whole.value}
        return all(str(key.value) in said and _holds(said[str(key.value)], value) for key, value in part.value)
    if isinstance(whole, yaml.SequenceNode) and isinstance(part, yaml.SequenceNode):
        if len(whole.value) == len(part.value) and all(map(_holds, whole.value, part.value)):
            return True
        few = len(whole.value) <= _FEW and len(part.value) <= _FEW
        return few and all(any(_holds(each, one) for each in whole.value) for one in part.value)
    return _is_scalar(whole) and _is_scalar(part) and (whole.tag, whole.value) == (part.tag, part.value)


def _is_scalar(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode)
