"""A path expression of a script as a glob: what is only known at run time becomes ``*``.

What an expression stands for is what the machine found as it followed the script, which is never run.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from argosy.workflows.script.bindings import Bindings
from argosy.workflows.script.conditions import Conditions
from argosy.workflows.script.flags import Flag
from argosy.workflows.script.globs import UNKNOWN, either, file_of, key_of
from argosy.workflows.script.machine import Machine
from argosy.workflows.script.source import Source, last_name

OUTSIDE = ("/", "..", "~", "$")
"""So begins a path that is not below the folder that the script runs in."""
_ANEW = ("strftime", "isoformat", "now", "uuid4", "mkdtemp", "ctime", "today")
_ANEW_NUMBER = re.compile(r"(int|str|round)\(([\w.]*\.)?time\(\)\)")


class Values:
    """What the script's expressions stand for."""

    def __init__(self, source: Source, flags: Sequence[Flag], given: Mapping[str, str | None], cwd: Path,
                 arguments: Sequence[str] = (), environ: Mapping[str, str] = MappingProxyType({})) -> None:  # fmt: skip
        """``given``: flags on the command line, and settings of the script's own file, by attribute."""
        self.source = source
        self.flags = flags
        self.machine = Machine(source, flags, given, cwd, arguments, environ)
        self._flags = {flag.attribute: flag for flag in flags}
        self.bindings = Bindings(source)
        self.conditions = Conditions(source, self._flags, given, self.bindings)
        self.named_anew = any(
            last_name(call.func) in _ANEW or _ANEW_NUMBER.fullmatch(ast.unparse(call)) for call in source.calls
        )
        """Whether names are made that no other start has."""

    def guess(self, node: ast.expr) -> str | None:
        """The glob, normalised; None when nothing of the file's name is known."""
        return next(iter(self.guesses(node)), None)

    def guesses(self, node: ast.expr) -> list[str]:
        """All globs that it may stand for: one for each caller of the function, each element of a loop."""
        known = dict.fromkeys(file_of(each) for each in self.machine.globs(node))
        return [each for each in known if each is not None]

    def folders(self, node: ast.expr) -> list[str]:
        """All folders that it may stand for."""
        known = dict.fromkeys(_folder_of(each) for each in self.machine.globs(node))
        return [each for each in known if each is not None]

    def folder(self, node: ast.expr) -> str | None:
        """The folder that it stands for, normalised; None when it is not known."""
        known = self.folders(node)
        return either(known) if known else None

    def flags_alone(self, node: ast.expr) -> Iterator[Flag]:
        """The flags that an expression is, with nothing before or after them."""
        for value in self.machine.seen.get(node, []):
            each = self.machine.hole_of(value)
            if each is not None and each.flag is not None:
                yield each.flag

    def endings(self, node: ast.expr) -> Iterator[tuple[Flag, str]]:
        """The flags without a value that name a file in a folder that is known, and what stands behind them."""
        for value in self.machine.seen.get(node, []):
            folder, _, name = self.machine.text(value).rpartition("/") if isinstance(value, str | Path) else ("",) * 3
            flag = next(iter(self.machine.flags_of(name[:1])), None) if folder else None
            if flag is not None and not self.machine.has_holes(f"{folder}{name[1:]}"):
                yield flag, name[1:] or f"{folder}/"

    def flag(self, attribute: str) -> Flag | None:
        """The flag of that name in the parsed arguments."""
        return self._flags.get(attribute)

    def untold(self, node: ast.expr | None) -> Flag | None:
        """The flag that names the folder that a path lies in, and which has no value, or one outside."""
        if node is None:
            return None
        if (flag := next(self.machine.flags_in(node), None)) is not None:
            own = {owner for owner, _ in self.bindings.attributes.get(flag.attribute, [])} - {"self"}
            return None if own and flag.name.endswith("=") else flag  # a setting that the script fills in
        usual = [each for each in self.bindings.origins(node) if isinstance(each, ast.BoolOp)]  # args.path or another
        flag = self._flags.get(key_of(usual[0].values[0])) if usual and isinstance(usual[0].op, ast.Or) else None
        if flag is not None and flag.takes_value and not self.conditions.flag(flag.attribute):
            return flag
        outside = [each for each in self.machine.globs(node) if each.startswith(OUTSIDE)]
        for each in self._flags.values() if outside else ():
            said = (self.conditions.flag(each.attribute) or "").rstrip("/")
            if len(said) > 1 and any(path.startswith(said) for path in outside):
                return replace(each, default=said)
        if outside:
            return None  # whatever a flag of its name says, the script sets it
        if isinstance(node, ast.Name):  # with open(path) as name
            node = next(self.bindings.bound(node), node)
        while isinstance(node, ast.Call | ast.BinOp) and (isinstance(node, ast.BinOp) or node.args):
            node = node.left if isinstance(node, ast.BinOp) else node.args[0]
        flag = self._flags.get(key_of(node))
        now = None if flag is None or flag.computed else self.conditions.flag(flag.attribute)
        takes = flag is not None and flag.takes_value and not flag.computed
        return flag if takes and (not now or now.startswith(OUTSIDE)) else None


def _folder_of(found: str | None) -> str | None:
    if found is None or found.startswith(UNKNOWN):
        return None
    return posixpath.normpath(re.sub(r"[*\0]+", "*", found)) if found else "."
