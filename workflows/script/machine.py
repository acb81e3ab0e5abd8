"""Goes through a script from its first line, as Python would, and does nothing: what each call is given is kept."""

from __future__ import annotations

import ast
import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from argosy.workflows.script.answers import Answers
from argosy.workflows.script.domain import (
    LONGEST_TEXT,
    NUMBER,
    Absent,
    ClassValue,
    File,
    Frame,
    FunctionValue,
    ModuleValue,
    Unknown,
    Untold,
    Value,
    join,
)
from argosy.workflows.script.flags import Flag
from argosy.workflows.script.given import several
from argosy.workflows.script.globs import UNKNOWN, absolute, key_of
from argosy.workflows.script.methods import WRONG
from argosy.workflows.script.settings import TEXTS, changed, read_settings, typed
from argosy.workflows.script.source import Source, counted, last_name

_MOST_STEPS = 400_000
_MOST_MODULES = 30
"""Whose names are like one that only a run knows."""
RANKS = re.compile(r"rank|gpu|world|device|nodes|nproc")
"""Flags that whoever starts the ranks may set."""


class _Spent(Exception):
    """It was gone far enough."""


def _words(node: ast.AST) -> list[object]:
    """What a node names: functions and modules, also as a text."""
    if isinstance(node, ast.ImportFrom):
        return [each.name for each in node.names]
    return [node.value] if isinstance(node, ast.Constant) else [last_name(node)] if isinstance(node, ast.expr) else []


class Machine(Answers):
    """One way through a script."""

    def __init__(
        self,
        source: Source,
        flags: Sequence[Flag],
        given: Mapping[str, str | None],
        cwd: Path,
        arguments: Sequence[str] = (),
        environ: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``given``: what the command line, and files of settings, say, by attribute."""
        super().__init__()
        self._source = source
        self._flags = {flag.attribute: flag for flag in flags}
        self._told = given
        self._several = several(arguments, source, flags)
        self._cwd = cwd.resolve()
        self._modules: dict[Path, ModuleValue] = {}
        self._steps = 0
        self.arguments, self.environ, self.configs = arguments, environ, {}
        counts = (target for node in source.nodes if (target := counted(node)) is not None)
        self.counted = {last_name(each) or key_of(each) for each in counts}
        self.tables: dict[str, object] = {}  # files of settings that it read
        self._of_configs: dict[str, Value] = {}  # texts of files in Python that hold settings
        self.followed = False  # whether it came to a save from its first line
        self.finished = False  # whether it came to the end
        with contextlib.suppress(_Spent, RecursionError, *WRONG):
            self._load(source.path, "__main__")
            self.called_back()
            self.followed, self.sure = self._saved, {*self.calls}
            for each in ([source.path], [*self._modules]):
                self._uncalled(each)
            self.finished = True

    def _uncalled(self, paths: Sequence[Path]) -> None:
        """What nobody was seen to call, as long as nothing is saved: a library, or another script, may call it."""
        for frame in (self._modules[path].frame for path in paths):
            own = [each for each in frame.names.values() if getattr(each, "frame", None) is frame]
            kinds = [each for each in own if isinstance(each, ClassValue)]
            inside = [(one, kind) for kind in kinds for one in kind.attributes.values()]
            for each, kind in [*((one, None) for one in own), *inside]:
                if self._saved:
                    return
                if isinstance(each, FunctionValue) and each.node not in self._entered and self._is_meant(each, kind):
                    given = () if kind is None else (self._any_object(kind),)
                    self._enter(FunctionValue(each.node, each.frame, each.owner, given), [], {}, entry=True)

    def _is_meant(self, function: FunctionValue, kind: ClassValue | None) -> bool:
        """Whether anything may call it by its name, as nobody does what a module beside has for other scripts."""
        node = function.node
        if kind is not None or not function.frame.file or getattr(node, "decorator_list", None):
            return True
        return getattr(node, "name", "") in self._named

    @cached_property
    def _named(self) -> set[object]:
        return {word for each in self._source.nodes for word in _words(each)}

    def comes_to(self, call: ast.Call) -> bool:
        """Whether a run does, as far as it was followed."""
        return not self.followed or call in self.calls

    def spend(self) -> None:
        """Count what is looked at."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _Spent

    # Modules.

    def module(self, file: str, level: int, name: str) -> ModuleValue | None:
        """A module of the script, None where it is a library's."""
        base = self._source.paths[file].parent if file in self._source.paths else self._cwd
        folders = [base, *base.parents][level - 1 : level] if level else self._source.roots
        found, above = None, None
        parts = name.split(".") if name else ["__init__"]
        for count in range(1, len(parts) + 1):
            paths = self._source.found(folders, parts[:count])
            if paths is None:
                return None
            found = self._load(paths, ".".join(parts[:count]))
            if above is not None:
                above.frame.names.setdefault(parts[count - 1], found)
            above = found
        return found

    def _load(self, path: Path, name: str) -> ModuleValue:
        if path not in self._modules:
            tree = None if path.is_dir() else self._source.tree(path)
            file = self._source.name_of(path)
            frame = Frame({"__name__": name, "__file__": absolute(os.path.relpath(path, self._cwd))}, file)
            self._modules[path] = ModuleValue(frame)
            if tree is not None:
                self.body(tree.body, frame)
                for each in frame.names.values():
                    if isinstance(each, ClassValue) and each.frame is frame:
                        known = self.classes.setdefault(each.node.name, [])
                        known += [] if each in known else [each]
        return self._modules[path]

    def modules(self, pattern: str) -> list[ModuleValue]:
        """All modules whose names are like that."""
        if not self.has_holes(pattern):
            found = self.module("", 0, pattern)
            return [] if found is None else [found]
        folder, _, last = self.glob(pattern).replace(UNKNOWN, "*").rpartition(".")
        place = None if "*" in folder else self._source.found(self._source.roots, folder.split("."))
        inside = None if place is None else place.parent if place.is_file() else place
        names = [] if inside is None else [each.stem for each in sorted(inside.glob(f"{last}.py"))[:_MOST_MODULES]]
        loaded = (self.module("", 0, f"{folder}.{name}") for name in names if name != "__init__")
        return [each for each in loaded if each is not None]

    def add_folder(self, path: str) -> None:
        """Modules may lie there, too."""
        folder = (self._cwd / path).resolve()
        if folder.is_dir() and folder not in self._source.roots:
            self._source.roots.append(folder)

    def _existing(self, path: str) -> Path | None:
        return next((each for each in (self._cwd / path, self._source.path.parent / path) if each.is_file()), None)

    def module_of(self, path: str) -> ModuleValue | None:
        """The module in a file; None where there is none."""
        file = self._existing(path) if path.endswith(".py") else None
        return None if file is None else self._load(file.resolve(), file.stem)

    def _fn_exec(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        """A file's lines stand there: ``exec(open("configurator.py").read())``, which may ask for the command line."""
        first = self.text(args[0]) if isinstance(args[0], File) else ""
        asks = (tree := self._lines(first)) is not None and "sys.argv" in ast.unparse(tree)
        for word in (first, *(self.arguments if asks else ())):
            key, equals, text = word.lstrip("-").partition("=")
            if (run := self._lines(word)) is not None:
                self.block(run.body, self.frame)
            elif equals and key in self.frame.names:
                self.write(self.frame.names, key, typed(text))
        return None

    def _lines(self, path: str) -> ast.Module | None:
        file = self._existing(path) if path.endswith(".py") else None
        return None if file is None else self._source.tree(file.resolve())

    def config_file(self, path: str) -> Value:
        """The names of a file in Python that holds settings; None where it cannot be read."""
        file = self._existing(path)
        if file is None or file.suffix != ".py":
            return None if file is None else self.table(self.read_file(path))
        names = self._load(file.resolve(), file.stem).frame.names
        made = self.table({})
        for each in self.elements(names.get("_base_", [])) or []:
            base = self.config_file(os.path.relpath(file.parent / str(each), self._cwd))
            self.merge(made, base if isinstance(base, dict) else {})
        self.merge(made, {key: value for key, value in names.items() if not key.startswith("_")})
        self._of_configs |= {key: value for key, value in made.items() if isinstance(value, str)}
        return made

    # Settings.

    def told(self, name: str) -> Value:
        """What the command line, or a file of settings, gives a name; None for nothing."""
        flag = self._flags.get(name)
        if name in self._several:
            return [*self._several[name]]
        if name not in self._told or name in self.configs:
            return self.configs.get(name)
        if flag is not None and not flag.takes_value:
            return True
        return typed(self._told[name])

    def asked(self, name: str, default: ast.expr | None) -> Value:
        """What the command line makes of a parameter whose function is a command; None where its default counts."""
        self.read.add(name)
        known, flag = self.told(name), self._flags.get(name)
        if known is None and flag is not None and isinstance(default, ast.Constant) and not default.value:
            return Absent(flag, default.value)
        return known

    def told_by_name(self) -> Value:
        """What the command line gives a function with ``**options``."""
        names = [*self._flags, *(name for name in self._told if name not in self._flags)]
        return self.table({name: self.setting(name, name) for name in names}) if names else self.settings

    def setting(self, name: str, path: str) -> Value:
        """A flag, or a key of a file of settings; an Unknown where nothing is known of it."""
        self.read.add(name)
        below = path.partition(".")[2]
        known = self.told(below) if below else None
        known = self.told(name) if known is None else known
        flag = self._flags.get(name)
        if known is None and (flag is None or (flag.takes_value and flag.default is None and not flag.computed)):
            known = self._of_configs.get(name)
        if known is None and flag is None and name.isupper():  # of a module, however an object came by it
            known = next(
                (text for each in self._modules.values() if isinstance(text := each.frame.names.get(name), str)), None
            )
        if known is not None or flag is None:
            return Unknown(path) if known is None else known
        if RANKS.search(name):
            return Unknown(path, NUMBER)
        if flag.node is not None:
            self._flags[name] = replace(flag, node=None)  # it may ask for itself
            value = self._default(flag)
            self._flags[name] = flag
            if value == [] and not isinstance(value, Untold):
                value = Untold()
                value.flag, self.seen[flag.node] = flag, [value]
            return Absent(flag, value) if isinstance(value, int | float) and value < 0 else value
        value = typed(flag.default) if flag.default else "" if flag.default == "" else None
        if not flag.takes_value or not value or (isinstance(value, int | float) and value < 0):
            missing = value if flag.takes_value else False
            return Unknown(path, flag=flag) if flag.computed else Absent(flag, missing)
        return value

    def _default(self, flag: Flag) -> Value:
        """A default that is more than a constant: what the parser was given, as far as it was come to."""
        if flag.node is not None and flag.node in self.seen:
            return join(self.seen[flag.node])
        file = self._source.file(flag.node) if flag.node is not None else ""
        frame = next((each.frame for each in self._modules.values() if each.frame.file == file), None)
        unknown = frame is None or flag.node is None
        return Unknown(flag.attribute, flag=flag) if unknown else self.evaluate(flag.node, frame)  # type: ignore[arg-type]

    def lines(self, file: File) -> list[str] | None:
        """Those of a file of settings, which a script may take apart before it reads them; None of any other."""
        path = self.text(file.path)
        found = self._existing(path) if path.endswith(TEXTS) and not self.has_holes(path) else None
        with contextlib.suppress(OSError, ValueError):
            text = "" if found is None or found.stat().st_size > LONGEST_TEXT else found.read_text(encoding="utf-8")
            return text.splitlines(keepends=True) or None
        return None

    def read_file(self, path: str) -> object:
        """What a file of settings holds; None where it cannot be read."""
        tried = (self._cwd / path, self._source.path.parent / path)
        found = next((found for each in tried if each.is_file() and (found := read_settings(each)) is not None), None)
        self.tables[os.path.normpath(path)] = found
        return changed(found, self.arguments)
