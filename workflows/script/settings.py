"""Settings that a script reads from files: those that Hydra composes, and those that its arguments name."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from argosy.workflows.script.flags import Flag
from argosy.workflows.script.source import Function, Source

RUN_DIR = "hydra.run.dir"
_CHDIR = "hydra.job.chdir"
_FILES = (".json", ".yaml", ".yml", ".toml")
_OF_CONFIGARGPARSE = (".txt", ".ini", ".cfg", ".conf")
TEXTS = (*_FILES, *_OF_CONFIGARGPARSE[1:])
"""So end files of settings."""
_LINE = re.compile(r"""(?m)^[ \t]*(?:--)?(\w[\w-]*)[ \t]*[=:][ \t]*(["']?)(.{0,400}?\S)\2[ \t]*(?:[ \t][;#].*)?$""")
_REMARK = re.compile(r"(?m)(^|[\s,{\[])//.*$")
_LARGEST = 1 << 20
_MOST_FILES = 100
_CWD = "."
_OF_HYDRA = {"hydra:runtime.output_dir": RUN_DIR, "hydra:runtime.cwd": _CWD}
_REFERENCE = re.compile(r"\$\{([^{}]*)\}|<([\w.]+)>")
"""``${group.key}`` of OmegaConf, ``<key>`` of HyperPyYAML."""


@dataclass
class Settings:
    """``values``: by the last part of the key; ``flags``: keys that have no value, as Hydra is given them: ``key=``."""

    values: dict[str, str] = field(default_factory=dict)
    flags: list[Flag] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Key -> the file of its value, as the arguments name it."""
    keys: dict[str, str] = field(default_factory=dict)
    """The same, also of keys that have no value."""
    hydra: str = ""
    """Where the script is handed to Hydra."""
    moves: bool = False
    """Whether each start has a working directory of its own."""
    saver: dict[str, Any] | None = None
    """What the files say of Lightning's ModelCheckpoint."""

    def has(self, table: str) -> bool:
        """Whether the files have a table of that name."""
        return any(f".{table}." in f".{name}." for name in self.values)

    def resolved(self, text: str, depth: int = 8) -> str:
        """The text with what it refers to; ``*`` for what only a run could tell."""

        def meant(found: re.Match[str]) -> str:
            whole = _OF_HYDRA.get(found[1] or "", found[1] or found[2] or "")
            if whole == _CWD:
                return _CWD
            name = whole if whole in self.values else whole.rpartition(".")[2]
            return self.resolved(self.values[name], depth - 1) if depth and name in self.values else "*"

        return _REFERENCE.sub(meant, text)


def settings_of(source: Source, folder: Path, arguments: Sequence[str], flags: Sequence[Flag]) -> Settings:
    """What ``@hydra.main(config_path=..., config_name=...)`` and the arguments, or their defaults, name."""
    found = Settings()
    for node in source.nodes:
        for each in node.decorator_list if isinstance(node, Function) else ():
            named = {word.arg: word.value.value for word in getattr(each, "keywords", []) if _constant(word.value)}
            if str(named.get("config_path")).endswith((".yaml", ".yml")):  # as Hydra 1.0 has it
                place = PurePosixPath(str(named["config_path"]))
                named |= {"config_path": str(place.parent), "config_name": place.name}
            named |= _of_command_line(arguments)
            if "config_name" in named and ast.unparse(each).startswith("hydra.main"):
                found.hydra = source.where(node)
                found.moves = str(named.get("version_base", "1.1")) < "1.2"
                found.flags.append(Flag(f"{RUN_DIR}=", True, None, False, found.hydra, dest=RUN_DIR))
                path = folder / str(named.get("config_path") or ".") / str(named["config_name"])
                _compose(found, path, "", set())
                _say_again(found, arguments)
                found.moves = _moves(found, arguments)
    said = {word.partition("=")[0] for word in arguments}
    told = [*(word.rpartition("=")[2] for word in arguments),
            *(flag.default or "" for flag in flags if said.isdisjoint((flag.name, *flag.aliases)))]  # fmt: skip
    files = (*_FILES, *_OF_CONFIGARGPARSE) if "configargparse" in source.packages else _FILES
    for text in told:
        if text.endswith(files):
            known, content = {*found.values}, read_settings(_place(text, folder, source.roots))
            _take(found, content, "")
            found.keys |= dict.fromkeys(_keys(content), text)
            found.files |= {key: text for key in found.values if key not in known}
    return found


def _place(text: str, folder: Path, roots: Sequence[Path]) -> Path:
    """The file of that name; one of a package's own, as Hydra finds it there, lies a folder deeper."""
    below = (each for root in roots for each in sorted(root.glob(f"*/{text}")) if text[:1] not in "/.~")
    return next((each for each in (Path(text), folder / text) if each.is_file()), None) or next(below, folder / text)


def _of_command_line(arguments: Sequence[str]) -> dict[str | None, Any]:
    """What Hydra's own flags say instead of the script: ``--config-name``, ``--config-path``."""
    short = {"-cn": "config_name", "-cp": "config_path"}
    told = dict[str | None, Any]()
    for word, after in zip(arguments, (*arguments[1:], ""), strict=False):
        name, equals, value = word.partition("=")
        key = short.get(name, name.lstrip("-").replace("-", "_"))
        if name[:1] == "-" and key in short.values():
            told[key] = value if equals else after
    return told


def _moves(found: Settings, arguments: Sequence[str]) -> bool:
    """What ``hydra.job.chdir`` says, on the command line or in the files; else what its version does."""
    told = [value for key, _, value in (word.lstrip("+").partition("=") for word in arguments) if key == _CHDIR]
    if told or _CHDIR in found.values:
        return str((*told, found.values.get(_CHDIR))[0]).lower() == "true"
    return found.moves and not any(flag.name == f"{_CHDIR}=" for flag in found.flags)


def _say_again(found: Settings, arguments: Sequence[str]) -> None:
    """What words of the command line, as ``train.out=x``, give keys that have a value in the files."""
    for key, equals, value in (word.lstrip("+").partition("=") for word in arguments):
        last = key.rpartition(".")[2]
        if equals and key in found.values:
            found.values |= {key: value, **({last: value} if found.values.get(last) == found.values[key] else {})}


def _constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _compose(found: Settings, path: Path, group: str, seen: set[Path]) -> None:
    """A file of Hydra's, then those of its list of defaults, which lie in folders beside it."""
    path = path if path.suffix in (".yaml", ".yml") else path.with_name(f"{path.name}.yaml")
    if path in seen or len(seen) > _MOST_FILES:
        return
    seen.add(path)
    content, known = read_settings(path), {*found.values}
    _take(found, content, group)
    found.files |= {key: path.as_posix() for key in found.values if key not in known}
    defaults = content.get("defaults") if isinstance(content, dict) else None
    for each in defaults if isinstance(defaults, list) else ():
        for key, option in each.items() if isinstance(each, dict) else [("", each)]:
            name = str(key).split()[-1].partition("@")[0].strip("/") if key else ""
            if isinstance(option, str) and option != "_self_":
                _compose(found, path.parent / name / option, ".".join(filter(None, (group, name))), seen)


class _Loader(yaml.SafeLoader):
    """Reads ``!ref`` and the like as the text that stands there."""


def _as_written(loader: _Loader, _: str, node: yaml.Node) -> object:
    return node.value if isinstance(node, yaml.ScalarNode) else None


_Loader.add_multi_constructor("!", _as_written)


def read_settings(path: Path) -> object:
    """What stands in the file; None where nothing can be read."""
    try:
        if path.stat().st_size > _LARGEST:
            return None
        text = path.read_text(encoding="utf-8")
        if path.suffix in _OF_CONFIGARGPARSE:
            return {each[1].replace("-", "_"): yaml.load(each[3], Loader=_Loader) for each in _LINE.finditer(text)}
        return parsed(text, path.suffix)
    except (OSError, ValueError, yaml.YAMLError):
        return None


def parsed(text: str, suffix: str = "") -> object:
    """What stands in a text of settings, a list of several documents; None where nothing can be read."""
    if suffix == ".toml":
        with contextlib.suppress(ValueError, RecursionError):
            return tomllib.loads(text)
        return None
    for read in (
        json.loads,
        _documents,
        lambda given: _documents(_REMARK.sub("", given)),
    ):  # what is left of JSON is YAML
        with contextlib.suppress(ValueError, TypeError, yaml.YAMLError, RecursionError):
            return read(text)
    return None


def _documents(text: str) -> object:
    several = [*yaml.load_all(text, Loader=_Loader)]
    return several if several[1:] else [*several, None][0]


def changed(content: Any, words: Sequence[str]) -> object:
    """The content with what words of the command line, as ``train.out=x``, give its keys."""
    for word in words:
        *above, last = word.partition("=")[0].split(".")
        place = content
        for key in above:
            place = place.get(key) if isinstance(place, dict) else None
        if above and "=" in word and isinstance(place, dict) and last in place:
            place[last] = typed(word.partition("=")[2])
    return content


def with_read(found: Settings, read: Mapping[str, object]) -> Settings:
    """The same with what stands in files that the script reads, whoever names them."""
    more = Settings()
    for path, content in read.items():
        _take(more, content, "")
        more.keys |= {key: path for key in _keys(content) if key not in more.keys}
    return replace(found, keys={**more.keys, **found.keys}, values={**more.values, **found.values})


def _take(found: Settings, content: object, group: str) -> None:
    """Keep the leaves; what was read first stays."""
    waiting: list[tuple[str, Any]] = [(group, content)]
    leaves = dict[str, str]()
    while waiting:
        key, each = waiting.pop()
        if isinstance(each, dict):
            if str(each.get("_target_", "")).endswith(".ModelCheckpoint") or key.endswith("model_checkpoint"):
                found.saver = {**each, **{name: value for name, value in (found.saver or {}).items() if value}}
            waiting += [(".".join(filter(None, (key, str(name)))), value) for name, value in each.items()]
        elif isinstance(each, list):
            waiting += [(key, one) for one in each if isinstance(one, dict)]
        elif isinstance(each, str | int | float) and each is not False and each != "???":
            leaves.setdefault(key, str(each))
        elif found.hydra:
            found.flags.append(Flag(f"{key}=", True, None, False, "its file of settings", dest=key.rpartition(".")[2]))
    for each in (leaves, {key.rpartition(".")[2]: value for key, value in reversed(leaves.items())}):
        found.values |= {name: value for name, value in each.items() if name not in found.values}


def _keys(content: object, above: str = "", depth: int = 8) -> list[str]:
    """All of them, whole."""
    if not isinstance(content, dict) or not depth:
        return []
    names = [(f"{above}{name}", each) for name, each in content.items()]
    return [key for name, each in names for key in (name, *_keys(each, f"{name}.", depth - 1))]


def typed(text: str | None) -> Any:
    """A word of the command line, or a leaf of a file, as its program has it."""
    if text is None or text in ("True", "true"):
        return True
    if text in ("False", "false"):
        return False
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text
