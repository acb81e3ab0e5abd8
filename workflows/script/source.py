"""The script and the modules beside it that it imports, as one list of nodes: who stands in which function."""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from argosy.steps.contract.errors import InputError

_NO_SCRIPTS = frozenset((".toml", ".yaml", ".yml", ".json", ".ipynb", ".md", ".txt"))
"""So end files that may be taken for Python by their syntax: a run.toml reads as one."""
_SHELL = frozenset((".sh", ".bash", ".slurm", ".sbatch"))
_SHEBANG = re.compile(r"#!.*\b(?:ba|z|da|k)?sh\b")
_STARTED = re.compile(r"(?<![\w./$-])[\w./-]+\.py\b")
_SHELL_READ = 1 << 20
LARGEST_SCRIPT = 4 << 20
MOST_MODULES = 60
_MOST_TREES = 200
Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.Module


class Source:
    """Nodes of all modules, the script's first; the tree is never run."""

    def __init__(self, modules: Sequence[tuple[str, Path, ast.Module]], roots: Sequence[Path]) -> None:
        """``modules``: the file's name, "" for the script itself, its path, and its tree; ``roots``: where it looks for
        more.
        """
        self.nodes: list[ast.AST] = []
        self.roots = [*roots]
        self.paths = {name: path for name, path, _ in modules}
        self._trees: dict[Path, ast.Module | None] = {path: tree for _, path, tree in modules}
        self.path = modules[0][1]
        self._file: dict[ast.AST, str] = {}
        self._parent: dict[ast.AST, ast.AST] = {}
        for name, _, tree in modules:
            self._learn(name, tree)
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        self.imports: dict[tuple[str, str], str] = {}
        """(file, name in it) -> what was imported by that name, with dots."""
        self.top: set[tuple[str, str]] = set()
        """The modules that a file imports for all that stands in it."""
        for node in self.nodes:
            self._import(node)

    def _learn(self, name: str, tree: ast.Module) -> None:
        found = sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0))
        self.nodes += found
        for node in found:
            self._file[node] = name
            for child in ast.iter_child_nodes(node):
                self._parent[child] = node

    def started(self, cwd: Path) -> str:
        """How it finds its modules: "module" where it is one of a package; where some do not lie in its own folder,
        which is all that Python looks through, but in the one that it is called in or below: that one, "." or "src".
        """
        own = [node for node in self.nodes if self._file[node] == "" and isinstance(node, ast.Import | ast.ImportFrom)]
        if any(getattr(node, "level", 0) and self.function_of(node) is None for node in own):
            return "module"
        adds = (node.lineno for node in self.nodes if isinstance(node, ast.Attribute) and self._file[node] == ""
                and ast.unparse(node) == "sys.path")  # fmt: skip
        first = min(adds, default=sys.maxsize)  # what is imported then may lie in the folders that it adds
        own = [node for node in own if node.lineno < first]
        names = {(getattr(node, "module", "") or each.name).partition(".")[0] for node in own for each in node.names}
        lacks = [name for name in names if self.found([self.path.parent], [name]) is None]
        here = cwd.resolve()
        if any(self.found([here], [name]) is not None for name in lacks):
            return "."
        below = [root for root in self.roots if root.is_relative_to(here)]
        packages = [root for root in below if any((root / name / "__init__.py").is_file() for name in lacks)]
        return packages[0].relative_to(here).as_posix() if packages else ""

    def _import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            base = f"{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                name, whole = alias.asname or alias.name, base + alias.name
                first = name.partition(".")[0]
                self.imports[(self._file[node], first)] = whole if name == first or alias.asname else first
                if isinstance(self._parent[node], ast.Module | ast.Try):
                    self.top.add((self._file[node], name if name == whole else ""))

    def found(self, folders: Sequence[Path], parts: Sequence[str]) -> Path | None:
        """The file of a module in one of the folders, or the folder of a package without one."""
        for folder in folders:
            place = folder.joinpath(*parts)
            for each in (place / "__init__.py", place.with_suffix(".py")):
                if each.is_file():
                    return each
        return next((place for folder in folders if (place := folder.joinpath(*parts)).is_dir()), None)

    def name_of(self, path: Path) -> str:
        """The name of a file among the modules, as ``file`` has it."""
        return next((name for name, each in self.paths.items() if each == path), _short(path, self.roots))

    def tree(self, path: Path) -> ast.Module | None:
        """What stands in a file, which becomes one of the modules; None where it is not Python."""
        if path not in self._trees:
            self._trees[path] = None
            if len(self._trees) < _MOST_TREES:
                with contextlib.suppress(InputError):
                    self._trees[path] = tree = _parsed(path)
                    name, start = self.name_of(path), len(self.nodes)
                    self.paths[name] = path
                    self._learn(name, tree)
                    for node in self.nodes[start:]:
                        self._import(node)
                    self.calls += [node for node in self.nodes[start:] if isinstance(node, ast.Call)]
        return self._trees[path]

    def adopt(self, made: ast.expr, beside: ast.AST) -> ast.expr:
        """An expression that the script does not have, in the place of one that it has."""
        self._file[made], self._parent[made] = self._file[beside], self._parent[beside]
        return made

    def file(self, node: ast.AST) -> str:
        """The module that it stands in, "" for the script itself."""
        return self._file[node]

    def where(self, node: ast.AST) -> str:
        """``line 12`` of the script, ``utils.py:12`` of another."""
        name, line = self._file[node], getattr(node, "lineno", 1)
        return f"{name}:{line}" if name else f"line {line}"

    @property
    def packages(self) -> set[str]:
        """The packages that are imported."""
        return {whole.partition(".")[0] for whole in self.imports.values()}

    def origin(self, node: ast.AST) -> str:
        """``keras.callbacks.ModelCheckpoint``, however the file calls it; "" for what was not imported."""
        if isinstance(node, ast.Attribute):
            owner = self.origin(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        return self.imports.get((self._file[node], node.id), "") if isinstance(node, ast.Name) else ""

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes that it stands in, the nearest first."""
        while (found := self._parent.get(node)) is not None:
            yield found
            node = found

    def scopes(self, node: ast.AST) -> Iterator[Scope]:
        """The functions that it stands in, the nearest first, then its module."""
        return (each for each in self.above(node) if isinstance(each, Scope))

    def function_of(self, node: ast.AST) -> Function | None:
        """The nearest function that it stands in."""
        return next((each for each in self.above(node) if isinstance(each, Function)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class whose method it stands in."""
        return next((each for each in self.above(node) if isinstance(each, ast.ClassDef)), None)


def last_name(node: ast.expr) -> str:
    """``c`` of ``a.b.c`` and of ``c``; "" of anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def counted(node: ast.AST) -> ast.expr | None:
    """What ``n += 1``, or ``n = n + 1``, counts on."""
    if isinstance(node, ast.AugAssign):
        return node.target
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.BinOp):
        return None
    adds = isinstance(node.value.right, ast.Constant) and isinstance(node.value.right.value, int)
    return node.targets[0] if adds and ast.unparse(node.value.left) == ast.unparse(node.targets[0]) else None


def argument(call: ast.Call, name: str, place: int = -1) -> ast.expr | None:
    """What a call gives a parameter, by its name or at its ``place`` (-1: by its name only)."""
    keyword = next((word.value for word in call.keywords if word.arg == name), None)
    starred = any(isinstance(each, ast.Starred) for each in call.args)
    return call.args[place] if keyword is None and 0 <= place < len(call.args) and not starred else keyword


def default_of(value: ast.expr) -> ast.expr:
    """``"x"`` of ``typer.Option("x", "--out")``, which stands for the default; anything else itself."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("typer.Option", "typer.Argument"):
        found = argument(value, "default", 0)
        return value if found is None or plain(found) == "Ellipsis" else found
    return value


def plain(node: ast.expr | None) -> str | None:
    """A constant as a flag's default has it; None for none, a switch and what only a run could tell."""
    value = node.value if isinstance(node, ast.Constant) else None
    return None if value is None or isinstance(value, bool) else str(value)


def written_out(node: ast.AST) -> list[tuple[str, ast.expr]]:
    """Keys and values of ``{"key": value}`` and ``dict(key=value)``; [] of anything else."""
    if isinstance(node, ast.Dict):
        return [(key.value, value) for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)]  # fmt: skip
    if isinstance(node, ast.Call) and last_name(node.func) == "dict":
        return [(word.arg, word.value) for word in node.keywords if word.arg]
    return []


def read_source(path: Path, folders: Sequence[Path] = ()) -> Source:
    """Parse the script, and what it imports from its own folder and from ``folders``.

    Raises:
        InputError: no such file, a folder, too large, not text, or not Python. Of what it imports nothing is asked.
    """
    if path.is_symlink() and not path.exists():
        raise InputError(f"SCRIPT {path}: a link that leads to no file; name your training script")
    if started := _started_by_shell(path):
        raise InputError(started)
    if path.suffix in _NO_SCRIPTS or (path.exists() and not path.is_file() and not path.is_dir()):
        raise InputError(f"SCRIPT {path}: no Python script; name the .py file that trains")
    modules, waiting, seen = list[tuple[str, Path, ast.Module]](), [path.resolve()], set[Path]()
    roots = list(dict.fromkeys([path.resolve().parent, *(folder.resolve() for folder in folders)]))
    # Up to the folder that it is started from: the script may be a module of a package.
    roots += [each / "src" for each in roots if (each / "src").is_dir()]
    above = [each for each in path.resolve().parents if any(each.is_relative_to(root) for root in roots[1:])]
    roots = list(dict.fromkeys([*roots, *above]))
    while waiting and len(modules) < MOST_MODULES:
        file = waiting.pop(0)
        if file in seen:
            continue
        seen.add(file)
        try:
            tree = _parsed(path if not modules else file)
        except InputError:
            if not modules:
                raise
            continue
        modules.append((_short(file, roots) if modules else "", file, tree))
        waiting += _imported(tree, file, roots)
    return Source(modules, roots)


def _started_by_shell(path: Path) -> str:
    """What is said of a script of the shell, which mostly starts the one that trains; "" of anything else."""
    if not path.is_file():
        return ""
    with contextlib.suppress(OSError), path.open("rb") as file:
        text = file.read(_SHELL_READ).decode(errors="replace")
        if path.suffix in _SHELL or _SHEBANG.match(text):
            named = _STARTED.search(text)
            way = f"give that one: argosy init {named[0]}" if named else "name the .py file that trains"
            what = f"starts {named[0]}" if named else "is no Python"
            return f"SCRIPT {path}: a shell script, which {what}; {way}"
    return ""


def _parsed(path: Path) -> ast.Module:
    try:
        if path.stat().st_size > LARGEST_SCRIPT:
            raise InputError(f"SCRIPT {path}: larger than {LARGEST_SCRIPT >> 20} MiB; name the training script itself")
        return ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        named = path / "__main__.py" if path.is_dir() else Path(f"{str(path).replace('.', '/')}.py")
        which = f", for example {named}" if named.is_file() else ""
        raise InputError(f"SCRIPT {path}: {error.strerror}; name your training script{which}") from error
    except SyntaxError as error:
        here = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
        where = f"SCRIPT {path}:{error.lineno or 1}"
        raise InputError(f"{where}: not {here} ({error.msg}); name a .py file that it can run") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"SCRIPT {path}: not Python ({error}); name a .py file") from error


def _short(file: Path, roots: Sequence[Path]) -> str:
    return next((str(file.relative_to(root)) for root in roots if file.is_relative_to(root)), file.name)


def _imported(tree: ast.Module, file: Path, roots: Sequence[Path]) -> list[Path]:
    """Files of the modules that it imports, those that lie beside it."""
    names = list[tuple[list[Path], str]]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [([*roots], alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [*roots] if node.level == 0 else [file.parents[node.level - 1]]
            module = node.module or ""
            names += [(base, module), *((base, f"{module}.{alias.name}".strip(".")) for alias in node.names)]
    found = []
    for base, name in names:
        parts = Path(*name.split(".")) if name else Path("__init__")
        tried = (folder / part for folder in base for part in (parts.with_suffix(".py"), parts / "__init__.py"))
        found += [each for each in tried if name and each.is_file()][:1]
    return found
