"""A path expression of a script as a glob: what is only known at run time becomes ``*``.

Names are followed to the nearest assignment above them, to the arguments that a function is called with, to its
defaults, to flags, and to what ``self`` was given.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from argosy.workflows.script.bindings import Bindings
from argosy.workflows.script.conditions import Conditions
from argosy.workflows.script.flags import Flag
from argosy.workflows.script.globs import UNKNOWN, either, file_of, is_place, joined, key_of
from argosy.workflows.script.machine import Machine
from argosy.workflows.script.source import Source, last_name, plain

DEPTH = 24
"""Names that stand for names, at most: an expression that refers to itself has an end."""
MOST_PLACES = 200
"""So many callers of callers are asked what they give."""
_SAME = ("Path", "PurePath", "str", "fspath", "abspath", "realpath", "expanduser", "expandvars", "normpath", "resolve",
         "absolute", "as_posix")  # fmt: skip
_NUMBER = re.compile(r"%[-+ 0-9.]*[dfeg]|\{[^}:]*:[^}]*[dfeg%]\}")
OUTSIDE = ("/", "..", "~", "$")
"""So begins a path that is not below the folder that the script runs in."""
_SETTINGS = re.compile(r"(?i)arg|opt|conf|cfg|param|flag|setting|hps")
"""So are the objects called that hold a script's flags."""
_ANEW = ("strftime", "isoformat", "now", "uuid4", "mkdtemp", "ctime", "today")
_ANEW_NUMBER = re.compile(r"(int|str|round)\(([\w.]*\.)?time\(\)\)")
_HERE = ("getcwd", "cwd")


class Values:
    """What the script's expressions stand for."""

    def __init__(self, source: Source, flags: Sequence[Flag], given: Mapping[str, str | None], cwd: Path,
                 arguments: Sequence[str] = ()) -> None:  # fmt: skip
        """``given``: flags on the command line, and settings of the script's own file, by attribute."""
        self.machine = Machine(source, flags, given, cwd, arguments)
        self._flags = {flag.attribute: flag for flag in flags}
        self._given = given
        self._source = source
        self.bindings = Bindings(source)
        self.conditions = Conditions(source, self._flags, given, self.bindings)
        self._known: dict[ast.expr, str | None] = {}
        self.named_anew = any(
            last_name(call.func) in _ANEW or _ANEW_NUMBER.fullmatch(ast.unparse(call)) for call in source.calls
        )
        """Whether names are made that no other start has."""
        # What yacs holds as constants, a file that only a run reads may change.
        self._files_win = any(
            isinstance(node, ast.ImportFrom) and node.module == "yacs.config" for node in source.nodes
        )

    def guess(self, node: ast.expr) -> str | None:
        """The glob, normalised; None when nothing of the file's name is known."""
        return next(iter(self.guesses(node)), None)

    def guesses(self, node: ast.expr) -> list[str]:
        """All globs that it may stand for: one for each caller of the function, each element of a loop."""
        known = dict.fromkeys(file_of(each) for each in self.machine.globs(node))
        if any(known):
            return [each for each in known if each is not None]
        all_of_them = islice(self.bindings.alternatives(node, 4), MOST_PLACES)
        found = dict.fromkeys(file_of(self._read(each, DEPTH)) for each in all_of_them)
        return [each for each in found if each is not None]

    def folders(self, node: ast.expr) -> list[str]:
        """All folders that it may stand for."""
        known = dict.fromkeys(_folder_of(each) for each in self.machine.globs(node))
        if any(known):
            return [each for each in known if each is not None]
        found = dict.fromkeys(self.folder(each) for each in islice(self.bindings.alternatives(node, 4), MOST_PLACES))
        return [each for each in found if each is not None]

    def folder(self, node: ast.expr) -> str | None:
        """The folder that it stands for, normalised; None when it is not known."""
        known = [each for text in self.machine.globs(node) if (each := _folder_of(text)) is not None]
        return either(known) if known else _folder_of(self._read(node, DEPTH))

    def untold(self, node: ast.expr | None, depth: int = DEPTH, seen: set[ast.expr] | None = None) -> Flag | None:
        """The flag that names the folder that a path lies in, and which has no value, or one outside."""
        if seen is None and node is not None and (flag := next(self.machine.flags_in(node), None)) is not None:
            return flag
        seen = set() if seen is None else seen
        flag = self._flags.get(key_of(node))
        if node is None or not depth or node in seen or (flag is not None and flag.computed):
            return None
        seen.add(node)
        now = None if flag is None else self.conditions.flag(flag.attribute)
        if flag is not None and flag.takes_value and (not now or now.startswith(OUTSIDE)):
            return flag
        for each in self._beginnings(node):
            if (flag := self.untold(each, depth - 1, seen)) is not None:
                return flag
        return None

    def _beginnings(self, node: ast.expr) -> list[ast.expr]:
        """What a path expression begins with."""
        if isinstance(node, ast.Name):
            looped = self.bindings.alternatives(node, 1)
            return [*self.bindings.bound(node), *self.bindings.passed(node), *self.bindings.given(node), *looped]
        if isinstance(node, ast.Attribute):
            return [value for _, value in self.bindings.attributes.get(node.attr, [])]
        if isinstance(node, ast.BinOp):
            return [node.right] if is_place(node.left) else [node.left]
        if isinstance(node, ast.JoinedStr):
            return [part.value for part in node.values[:1] if isinstance(part, ast.FormattedValue)]
        if isinstance(node, ast.IfExp | ast.BoolOp):
            return node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            key = node.slice.value
            kept = self.bindings.keys.get(key) if isinstance(key, str) else None
            return self.bindings.elements(node, key) if isinstance(key, int) else [] if kept is None else [kept]
        if isinstance(node, ast.Call) and last_name(node.func) in ("join", *_SAME) and node.args:
            return node.args[:1]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            filled = node.func.attr == "format" and is_place(node.func.value)
            return node.args[:1] if filled else [node.func.value, *self.bindings.returned(node)]
        return self.bindings.returned(node) if isinstance(node, ast.Call) else []

    # Expressions.

    def _read(self, node: ast.expr, depth: int) -> str | None:
        """What the expression stands for; one that refers to itself stands for nothing."""
        if node not in self._known:
            self._known[node] = None
            self._known[node] = self._computed(node, depth) if depth else None
        return self._known[node]

    def _computed(self, node: ast.expr, depth: int) -> str | None:
        if isinstance(node, ast.Constant):
            # A number in a name is a setting or a count: neither is certain.
            return node.value if isinstance(node.value, str) else "*" if isinstance(node.value, int | float) else None
        if isinstance(node, ast.JoinedStr):
            return "".join(self._piece(part, depth) for part in node.values)
        if isinstance(node, ast.Name):
            return "." if node.id == "__file__" else self._named(node, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, depth)
        if isinstance(node, ast.BinOp):
            return self._operation(node, depth)
        if isinstance(node, ast.IfExp | ast.BoolOp):
            parts = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
            texts = [self._read(part, depth - 1) for part in parts]
            return next((text for text in texts if text), next((text for text in texts if text is not None), None))
        if isinstance(node, ast.Subscript):
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(key, int):
                return self._first(self.bindings.elements(node, key), depth)
            return self._setting(node, str(key), depth)
        return self._call(node, depth) if isinstance(node, ast.Call) else None

    def _keyed(self, key: str | None, depth: int) -> str | None:
        """What a key stands for: as it is given, else as the script writes it down."""
        value = self.bindings.keys.get(key or "")
        known = self.conditions.flag(key) if key else None
        return self._read(value, depth - 1) if known is None and value is not None else known

    def _first(self, nodes: Sequence[ast.expr], depth: int) -> str | None:
        return next((text for each in nodes if (text := self._read(each, depth - 1)) is not None), None)

    def _latest(self, values: Sequence[ast.expr], use: ast.expr, depth: int) -> tuple[list[str], bool]:
        """What ``values``, the latest first, make of a name: several where some are set in one branch only; and whether
        one of them is certain.
        """
        texts = []
        for value in values:
            around = set(self._source.above(use))
            branches = [each for each in self._source.above(value) if isinstance(each, ast.If) and each not in around]
            runs = self.conditions.runs(value) if branches else True
            text = self._read(value, depth - 1) if runs is not False else None
            if text is None and isinstance(value, ast.Call) and runs is None:
                text = UNKNOWN
            if text is not None:
                texts.append(text)
                if runs:
                    return texts, True
        return texts, False

    def _named(self, node: ast.Name, depth: int) -> str | None:
        """What it was assigned; a parameter: what all callers give it."""
        bound = [*self.bindings.bound(node)]
        own = [each for each in bound if next(self._source.scopes(each)) is next(self._source.scopes(bound[0]))]
        texts, sure = self._latest(own, node, depth)
        if texts and not sure and (given := [*self.bindings.given(node)]):
            # A parameter that a branch changes: what it was given before, or nothing is known.
            texts += [text for text in {self._read(each, depth - 1) for each in given} if text is not None]
            return either(texts) if len(texts) > len(own) else None
        if texts or (found := self._first(bound[len(own) :], depth)) is not None:
            return either(texts) if texts else found
        callers = [*self.bindings.passed(node)] or ([] if own else [*self.bindings.given(node)])
        passed = {self._read(each, depth - 1) for each in callers}
        if passed and None not in passed:
            return either(sorted(text for text in passed if text is not None))
        return None if passed else self._given.get(node.id)

    def _attribute(self, node: ast.Attribute, depth: int) -> str | None:
        if node.attr == "parent" and self._read(node.value, depth - 1) == ".":
            return "."
        if isinstance(node.value, ast.Name) and node.value.id == "os":
            return {"sep": "/", "curdir": "."}.get(node.attr)
        return self._setting(node, node.attr, depth)

    def _setting(self, node: ast.Attribute | ast.Subscript, name: str, depth: int) -> str | None:
        """``args.name`` and ``args["name"]``: what is assigned last has the last word, over the flag's default too."""
        items = self.bindings.items.get(name, [])[::-1]
        assigned = self.bindings.attributes.get(name, [])[::-1] if isinstance(node, ast.Attribute) else items
        own = [value for owner, value in (*assigned, *items) if owner == last_name(node.value)]
        its_own, flag = bool(own), self.conditions.flag(name)
        own = own or [value for owner, value in assigned if flag is None or _SETTINGS.search(owner)]
        if (given := self._given.get(name)) is not None and (name in self._flags or not its_own):
            longer = (text for each in own if (text := self._read(each, depth - 1)) and text.startswith(given))
            return next(longer, given)
        if self._files_win:
            own = [each for each in own if not isinstance(each, ast.Constant)]
        texts, sure = self._latest(own, node, depth)
        texts += [] if sure or flag is None else [flag]
        if texts:
            found = either(texts)
            return "*" if found.isdecimal() else found
        return self._keyed(name, depth) if isinstance(node, ast.Subscript) else self._field(name, depth)

    def _field(self, name: str, depth: int) -> str | None:
        """A field of a class of settings, or a name of a module."""
        values = self.bindings.fields.get(name, []) or self.bindings.globals.get(name, [])
        return self._first(values, depth)

    def _piece(self, part: ast.expr, depth: int) -> str:
        if isinstance(part, ast.FormattedValue):
            spec = ast.unparse(part.format_spec).strip("f'\"") if part.format_spec is not None else ""
            return "*" if spec[-1:] in ("d", "f", "e", "g") else self._text(part.value, depth)
        return self._read(part, depth - 1) or "*"

    def _text(self, node: ast.expr, depth: int) -> str:
        """A part of a text; of one that is not known at least whether it may hold folders."""
        plain = isinstance(node, ast.Name | ast.Attribute) and not self.bindings.is_counted(node)
        return self._read(node, depth - 1) or (UNKNOWN if plain else "*")

    def _operation(self, node: ast.BinOp, depth: int) -> str | None:
        left = self._read(node.left, depth - 1)
        if isinstance(node.op, ast.Mod):
            values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            return None if left is None else self._filled(left, r"%[-0-9.]*[a-zA-Z]", values, depth)
        right = self._read(node.right, depth - 1) or "*"
        if isinstance(node.op, ast.Div):
            return joined([left, right])
        return f"{self._text(node.left, depth)}{right}" if isinstance(node.op, ast.Add) else None

    def _filled(self, text: str, place: str, values: Sequence[ast.expr], depth: int) -> str:
        """``text`` with a value in each place that one is known for."""
        left = iter(values)

        def value(found: re.Match[str]) -> str:
            node = next(left, None)
            return "*" if node is None or _NUMBER.fullmatch(found[0]) else self._read(node, depth - 1) or "*"

        return re.sub(place, value, text)

    def _call(self, node: ast.Call, depth: int) -> str | None:
        """``os.path.join(a, b)``, ``Path(a)``, ``p.joinpath(b)``, ``"x{}".format(i)``, a function of the script."""
        name, owner = last_name(node.func), node.func.value if isinstance(node.func, ast.Attribute) else None
        if name == "format" and owner is not None:
            text = self._read(owner, depth - 1)
            return None if text is None else self._filled(text, r"\{[^}]*\}", node.args, depth)
        if name in _HERE or (name == "dirname" and self._first(node.args[:1], depth) == "."):
            return "."
        if name in ("get", "getenv") and len(node.args) == 2:
            known = self._keyed(plain(node.args[0]), depth)
            return self._read(node.args[1], depth - 1) if known is None else known
        if name == "join" and isinstance(owner, ast.Constant) and node.args:
            parts = node.args[0].elts if isinstance(node.args[0], ast.List | ast.Tuple) else node.args
            return str(owner.value).join(self._read(part, depth - 1) or "*" for part in parts)
        if name in ("joinpath", "join") and owner is not None:
            parts = node.args if name == "join" else [owner, *node.args]
            texts = [self._read(part, depth - 1) for part in parts]
            return joined(texts)
        if name in _SAME:
            inner = [*node.args, *([owner] if owner is not None and not node.args else [])]
            return joined([self._read(part, depth - 1) for part in inner])
        returned = [self._read(each, depth - 1) for each in self.bindings.returned(node)]
        return either([text or "*" for text in returned]) if any(returned) else None


def _folder_of(found: str | None) -> str | None:
    if found is None or found.startswith(UNKNOWN):
        return None
    return posixpath.normpath(re.sub(r"[*\0]+", "*", found)) if found else "."
