"""Paths of which parts are known, as globs."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Sequence

from argosy.workflows.script.source import plain

UNKNOWN = "\0"
"""Stands for a text of which nothing is known: a path that begins with it may lie anywhere."""


def key_of(node: ast.expr | None) -> str:
    """The name of a setting: of ``args.out`` and of ``args["out"]``."""
    if isinstance(node, ast.Subscript):
        return plain(node.slice) or ""
    return node.attr if isinstance(node, ast.Attribute) else ""


def either(texts: Sequence[str]) -> str:
    """One glob for all of them."""
    begin = posixpath.commonprefix(list(texts))
    rest = [text[len(begin) :][::-1] for text in texts]
    end = posixpath.commonprefix(rest)[::-1]
    between = "" if begin.endswith("*") or end.startswith("*") else "*"  # two of them are any number of folders
    return begin if len(set(texts)) == 1 else f"{begin}{between}{end}"


def absolute(path: str) -> str:
    """A path below the folder that the script runs in, whose own name only a run knows, so that it has one above."""
    return path if path.startswith((".", "/")) else f"./{path}"


def nameless(path: str) -> bool:
    """Whether it is the folder that the script runs in, or one above, whose name only a run knows."""
    return path != "" and not path.strip("./")


def folder_of(path: str) -> str:
    """Its dirname, for those of :func:`absolute` also above the folder that the script runs in."""
    return posixpath.normpath(f"{path}/..") if nameless(path) else posixpath.dirname(path)


def only_numbered(glob: str) -> str:
    """The same for files with a number where its last star is: ``model_*[0-9].pt``, which is no ``model_best.pt``."""
    return glob if "]" in glob else "*[0-9]".join(glob.rsplit("*", 1))


def file_of(found: str | None) -> str | None:
    """The glob of a file, normalised; None when nothing of its name is known."""
    if found is None or found.startswith(UNKNOWN):
        return None
    found = re.sub(r"\{[^{}]*\}", "*", found.replace(UNKNOWN, "*"))  # Keras fills in {epoch:02d} itself
    glob = posixpath.normpath(re.sub(r"\*+", "*", found))
    return None if posixpath.basename(glob) in ("*", "", ".", "..") else glob
