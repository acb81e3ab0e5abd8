"""What the usual functions of Python and of well known libraries give."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

from argosy.workflows.script.domain import (
    ANEW,
    NUMBER,
    SETTINGS,
    ClassValue,
    File,
    FunctionValue,
    Instance,
    ModuleValue,
    Table,
    Unknown,
    Value,
    choices,
    join,
)
from argosy.workflows.script.globs import absolute, folder_of, nameless
from argosy.workflows.script.handed import Handed
from argosy.workflows.script.methods import WRONG
from argosy.workflows.script.settings import typed

_SAME = frozenset({
    "abspath", "realpath", "normpath", "fspath", "expanduser", "expandvars", "resolve", "absolute", "as_posix",
    "deepcopy", "copy", "clone", "freeze", "str", "PurePath", "Path", "PosixPath", "PurePosixPath", "to_container",
    "to_object", "AttrDict", "FrozenConfigDict", "as_text", "upath", "UPath", "to_dict", "instantiate_paths",
    "to_absolute_path",
})  # fmt: skip
_ANEW = frozenset({
    "now", "today", "utcnow", "strftime", "ctime", "uuid4", "uuid1", "mkdtemp", "time", "isoformat", "asctime",
    "localtime", "gmtime", "TemporaryDirectory", "token_hex", "monotonic", "perf_counter", "getpid", "generate_id",
})  # fmt: skip
_TABLES = frozenset({
    "EasyDict", "edict", "CfgNode", "CN", "ConfigDict", "Namespace", "SimpleNamespace", "Munch", "munchify",
    "OmegaConf.create", "DictConfig", "DotMap", "Box", "Dict", "addict.Dict", "AttributeDict", "DotDict",
})  # fmt: skip
_PARSED = frozenset({
    "parse_args", "parse", "parse_args_into_dataclasses", "parse_known_args", "parse_intermixed_args",
    "parse_args_and_config", "parse_json_file", "parse_yaml_file", "parse_dict", "get_args", "docopt",
})  # fmt: skip
_CLOCKS = ("", "time", "datetime", "date", "uuid", "tempfile", "dt", "arrow", "pendulum")
_CLASS_PARSERS = ("tyro.cli", "simple_parsing.parse", "draccus.parse", "pyrallis.parse", "Tap")
_READERS = frozenset({
    "load", "safe_load", "full_load", "loads", "load_yaml", "unsafe_load", "read_yaml", "load_all", "safe_load_all",
})  # fmt: skip
_OF_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")
"""Variables that every rank has."""
_FREE = re.compile(r"^(increment|unique|next|free|new)_?\w*(path|dir|folder)$")
"""So is a function called that makes a name longer until it is free."""
_FORMATS = (
    *("json", "yaml", "toml", "tomllib", "tomli", "YAML"),
    *("OmegaConf", "pyyaml", "hjson", "simplejson", "commentjson"),
)


@dataclass(frozen=True)
class Known:
    """A result, which may be None."""

    value: Value


class Library(Handed):
    """What is not known of a library's function is an Unknown."""

    environ: Mapping[str, str] = MappingProxyType({})
    """Variables that the script will find."""
    configs: dict[str, Value]
    """Settings that a function of a file makes, which a flag of ml_collections names."""
    parsed = False
    """Whether its flags were asked for."""

    def add_folder(self, path: str) -> None:
        """Modules may lie there, too."""
        raise NotImplementedError

    def modules(self, pattern: str) -> list[ModuleValue]:
        """All modules whose names are like that."""
        raise NotImplementedError

    def module_of(self, path: str) -> ModuleValue | None:
        """The module in a file; None where there is none."""
        raise NotImplementedError

    def of_dataclass(self, kind: Value, default: Value = None) -> Value:
        """What a parser makes of a class whose fields are its flags."""
        raise NotImplementedError

    def of_library(self, function: Unknown, args: list[Value], named: dict[str, Value]) -> Known | None:
        """The result, None where the function is not known."""
        owner, _, name = function.name.rpartition(".")
        base = owner.rpartition(".")[2]
        way = getattr(self, f"_fn_{name}", None)
        if way is not None and (function.kind != "" or base in ("os", "path", "", "osp", "shutil")):
            try:
                return Known(way(args, named, owner))
            except WRONG:
                return None
        if name == "DEFINE_config_file" and args and isinstance(path := self.setting(args[0], args[0]), str):
            module = self.module_of(path.partition(":")[0])
            made = None if module is None else module.frame.names.get("get_config")
            if made is not None:  # what stands behind a colon is the function's own
                self.configs[args[0]] = self.apply(made, [path.partition(":")[2]] if ":" in path else [], {}, None)
        if name.startswith("DEFINE_") and args and isinstance(args[0], str):
            return Known(Unknown(args[0], attributes={"value": self.setting(args[0], args[0])}))
        if name in _PARSED or function.name.endswith(_CLASS_PARSERS):
            return Known(self._parsed(function.name, args, named))
        if name in _ANEW and (base in _CLOCKS or name not in ("time", "today")):
            return Known(Unknown(name, ANEW))
        if name in _TABLES or (base == "OmegaConf" and name in ("create", "merge", "structured")):
            return Known(self._tabled(args, named))
        if name in _READERS and any(each in owner for each in _FORMATS):
            loaded = self._loaded(args[0] if args else None)
            several = isinstance(loaded, list) and len(loaded) > 1
            return Known(loaded if several or not name.endswith("_all") else [loaded])
        if name.endswith("Path") and len(args) > 1:
            return Known(self.lifted(lambda *parts: PurePosixPath(*map(self.text, parts)), *args))
        if name in _SAME and args:
            return Known(self.lifted(lambda each: self._path(name, each), args[0]))
        if function.kind == ANEW:
            return Known(Unknown(name, ANEW))
        if _FREE.search(name) and args and isinstance(args[0], str | PurePosixPath):
            return Known(PurePosixPath(self.text(args[0]) + self.hole(Unknown(name, ANEW))))
        return None

    def _path(self, name: str, value: Value) -> Value:
        if name in ("Path", "PurePath", "PosixPath", "PurePosixPath", "UPath"):
            return PurePosixPath(self.text(value))
        if name in ("abspath", "realpath", "normpath"):
            return absolute(posixpath.normpath(self.text(value)))
        if name in ("deepcopy", "copy", "clone") and isinstance(value, dict):
            return self.table(value) if isinstance(value, Table) else dict(value)  # what is written to it stays there
        return self.text(value) if isinstance(value, PurePosixPath | File) and name in ("str", "fspath") else value

    def _parsed(self, name: str, args: list[Value], named: dict[str, Value]) -> Value:
        self.parsed = True
        if name.endswith(_CLASS_PARSERS):
            given = [*args[:1], *filter(None, [named.get("config_class")])]
            default = named.get("default")
            return join(self.of_dataclass(each, default) for each in choices(given[0])) if given else self.settings
        if name.endswith("parse_known_args"):
            return (self.settings, Unknown())
        return self.settings

    def _tabled(self, args: list[Value], named: dict[str, Value]) -> Value:
        args = [each for arg in args for each in (arg if isinstance(arg, list) else [arg])]
        args = [self.of_dataclass(each) if isinstance(each, ClassValue) else each for each in args]
        unknown = next((each for each in (*args, named.get("**")) if isinstance(each, Unknown)), None)
        found = next((each for each in args if isinstance(each, dict | Instance)), None)
        if found is None:
            return self.table(named) if unknown is None else unknown
        made = self.table(found)
        for each in args[1:]:
            if isinstance(each, dict):
                self.merge(made.attributes if isinstance(made, Instance) else made, each)
        return self.table({**made, **named}) if isinstance(made, dict) else made

    # Functions by their last name.

    def _fn_join(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return self.lifted(lambda *parts: posixpath.join(*map(self.text, parts)), *args) if args else Unknown()

    def _fn_get_outdir(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return self._fn_join(args, named, owner)  # timm's

    def _fn_sub(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        known = owner == "re" and isinstance(args[0], str) and isinstance(args[1], str)
        return self.lifted(lambda text: re.sub(args[0], args[1], self.text(text)), args[2]) if known else Unknown()

    def _fn_strftime(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        if owner != "time" or not isinstance(args[0], str) or "%" in args[0]:
            raise KeyError(owner)  # a moment
        return args[0]

    def _fn_relpath(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        here = len(args) < 2 or self.text(args[1]) in ("", ".")
        return self._path("normpath", args[0]) if here else Unknown()

    def _fn_basename(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return self._with_text(lambda path: Unknown() if nameless(path) else posixpath.basename(path), args)

    def _fn_dirname(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return self.lifted(lambda text: folder_of(self.text(text)), *args[:1])

    def _fn_isabs(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        begin = self.text(args[0])[:1]  # one of :func:`absolute` begins as './out' does, or not any more as a Path
        known = begin != "." and not self.has_holes(begin) and not isinstance(args[0], PurePosixPath)
        return begin == "/" if known else Unknown()

    def _fn_splitext(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return self._with_text(posixpath.splitext, args)

    def _fn_split(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return self._with_text(posixpath.split, args) if owner.endswith("path") else Unknown()

    def _with_text(self, function, args: list[Value]) -> Value:  # type: ignore[no-untyped-def]
        return self.lifted(lambda text: function(self.text(text)), *args[:1]) if args else Unknown()

    def _fn_getcwd(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return "."

    def _fn_cwd(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return PurePosixPath()

    _fn_get_original_cwd = _fn_getcwd

    def _fn_home(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return PurePosixPath("~")

    def _fn_getenv(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        name = self.text(args[0]) if args else ""
        if name in self.environ:
            return self.environ[name]
        if name in _OF_TORCHRUN:
            return Unknown(f"${name}", NUMBER)
        return args[1] if len(args) > 1 else named.get("default", Unknown(f"${name}"))

    def _fn_get(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        if owner.endswith("environ"):
            return self._fn_getenv(args, named, owner)
        return args[1] if len(args) > 1 else Unknown()

    def _fn_select(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        key = args[1] if owner.endswith("OmegaConf") and len(args) > 1 else None
        return self.setting(key.rpartition(".")[2], f"cfg.{key}") if isinstance(key, str) else Unknown()

    def _fn_open(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return self.lifted(File, args[0]) if args else Unknown()

    _fn_BlobFile = _fn_GFile = _fn_FileIO = _fn_smart_open = _fn_open

    def _fn_partial(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        function = args[0] if args else None
        if not isinstance(function, FunctionValue):
            return function
        return FunctionValue(function.node, function.frame, function.owner, (*function.given, *args[1:]),
                             {**function.named, **named})  # fmt: skip

    def _fn_import_module(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        found = [each for text in choices(args[0]) if isinstance(text, str) for each in self.modules(text)]
        return join(found) if found else Unknown()

    _fn___import__ = _fn_import_module

    def _fn_spec_from_file_location(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        found = self.module_of(self.text(args[1]))
        return Unknown() if found is None else found

    _fn_load_source = _fn_spec_from_file_location  # of imp

    def _fn_module_from_spec(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return args[0]

    def _fn_insert(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        for each in choices(args[-1]) if owner.endswith("sys.path") and args else ():
            if isinstance(each, str | PurePosixPath) and not self.has_holes(str(each)):
                self.add_folder(str(each))
        return None

    _fn_append = _fn_insert

    def _fn_from_cli(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        made = Table()
        more = [each for one in args for each in self.elements(one) or []]
        for word in dict.fromkeys([*self.arguments, *(each for each in more if isinstance(each, str))]):
            key, equals, value = word.partition("=")
            place, *more = (part for part in key.split("."))
            table: Value = made
            for part in more if equals else ():
                table, place = table.setdefault(place, Table()), part
            if equals:
                table[place] = typed(value)
        return made

    def _fn_fromfile(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        paths = [self.text(each) for each in choices(args[0])]
        found = [self.config_file(path) for path in paths if not self.has_holes(path)]
        return join(found) if found and None not in found else Unknown("", SETTINGS)

    def config_file(self, path: str) -> Value:
        """The names of a file in Python that holds settings; None where it cannot be read."""
        raise NotImplementedError
