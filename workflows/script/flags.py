"""The flags that a script declares: with argparse, click, or as fields of a dataclass that becomes a parser."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from argosy.workflows.script.source import Function, Source, argument, default_of, last_name, plain, written_out

_SAYS_A_FLAG = frozenset({"default", "type", "action", "help", "required", "dest", "nargs", "choices", "is_flag"})
_COMMANDS = ("typer.run", "jsonargparse.CLI", "jsonargparse.auto_cli")
_OF_TRUTH = re.compile(r"(?i)bool$")
_OF_ABSL = "DEFINE_"
_BY_DOCOPT = re.compile(r"(?ms)^[ \t]+(-\S.*?)(?=\n[ \t]*-|\n[ \t]*\n|\n\S|\Z)")


@dataclass(frozen=True)
class Flag:
    """A command line flag that the script declares; ``default`` None: none, or one that only a run could tell."""

    name: str
    takes_value: bool
    default: str | None
    required: bool
    where: str
    dest: str = ""
    computed: bool = False
    """It has a default, which is no text."""
    aliases: tuple[str, ...] = ()
    """Other names that the command line may have, as ``-o`` is."""
    truth: str = ""
    """It takes a value, which is true or false: the word for true."""
    node: ast.expr | None = field(default=None, compare=False, repr=False)
    """The default that is more than a constant."""

    @property
    def attribute(self) -> str:
        """Its name in the parsed arguments."""
        return self.dest or self.name.lstrip("-").replace("-", "_")


def declared(source: Source, arguments: Sequence[str] = ()) -> tuple[Flag, ...]:
    """Each flag once, in the order of the source; of a module that others use, too, those that are read; of several
    commands those of the one that the ``arguments`` name.
    """
    found: dict[str, Flag] = {}
    read = {getattr(node, "attr", getattr(node, "id", getattr(node, "value", None))) for node in source.nodes
            if isinstance(node, ast.Attribute | ast.Name | ast.Constant)}  # fmt: skip
    commands = {ast.unparse(node.targets[0]) for node in source.nodes if isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call) and last_name(node.value.func) == "add_parser"}  # fmt: skip
    made = {source.file(call) for call in source.calls if last_name(call.func) == "ArgumentParser"}
    parsed = {source.file(call) for call in source.calls if last_name(call.func) in ("parse_args", "parse_known_args")
              and source.function_of(call) is None}  # fmt: skip
    apart = made & parsed - {""} if "" in made else set()  # parsers of other programs, which are imported
    for call in (each for each in source.calls if source.file(each) not in apart):
        flag = _argument(call, source) or _of_absl(call, source)
        if flag is not None and flag.required and ast.unparse(call.func).rpartition(".")[0] in commands:
            flag = replace(flag, required=False)  # of one command among others
        if flag is not None and (not source.file(call) or flag.attribute in read):
            found.setdefault(flag.name, flag)
    for each in (*_of_docopt(source), *_of_fire(source, arguments)):
        found.setdefault(each.name, each)
    defaults = {word.arg: word.value for call in source.calls if last_name(call.func) == "set_defaults"
                for word in call.keywords}  # fmt: skip
    for name, each in found.items():
        if (value := defaults.get(each.attribute)) is not None:
            found[name] = replace(each, default=plain(value), computed=_is_computed(value), node=None)
        elif each.default == "0" and not each.truth and _is_asked_only(each, source):
            found[name] = replace(each, truth="1")
    return tuple(found.values())


def _is_asked_only(flag: Flag, source: Source) -> bool:
    """Whether a number that is 0 is asked for as a switch is, and nowhere for which one it is."""
    asked = {node for node in source.nodes if isinstance(node, ast.Attribute) and node.attr == flag.attribute}
    whole = [node.test for node in source.nodes if isinstance(node, ast.If | ast.IfExp)]
    parts = [part for each in whole for part in getattr(each, "values", [getattr(each, "operand", each)])]
    return bool(asked) and flag.takes_value and asked <= {*whole, *parts}


def _argument(call: ast.Call, source: Source) -> Flag | None:
    """``add_argument("--out", default="x")``, ``click.option("--out", default="x")``, or another's method like it."""
    if (
        not isinstance(call.func, ast.Attribute)
        or ast.unparse(call.func) == "typer.Option"
        or not (call.func.attr in ("add_argument", "option") or _SAYS_A_FLAG & {word.arg for word in call.keywords})
    ):
        return None
    said = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    names = [name.partition("/")[0].rstrip() for name in said]  # click's --resume/--no-resume
    long = [name for name in names if name.startswith("--")] or [name for name in names if re.match(r"-\w\w", name)]
    if not long:
        return None
    keywords = {word.arg: word.value for word in call.keywords}
    action, click = keywords.get("action"), call.func.attr == "option"
    stores = action is None or (isinstance(action, ast.Constant) and action.value in ("store", "append"))
    return Flag(
        name=long[0],
        takes_value=stores and names == said and not is_true(keywords.get("is_flag")),
        default=plain(keywords.get("default")),
        required=is_true(keywords.get("required")),
        where=source.where(call),
        dest=plain(keywords.get("dest")) or next((name for name in names if click and name.isidentifier()), ""),
        computed=_is_computed(keywords.get("default"))
        or (action is not None and "store_true" not in ast.unparse(action)),
        aliases=tuple(name for name in names if name != long[0] and name.startswith("-")),
        truth="True" if "type" in keywords and _OF_TRUTH.search(ast.unparse(keywords["type"])) else _one(keywords),
        node=None if isinstance(keywords.get("default"), ast.Constant) else keywords.get("default"),
    )


def of_call(names: Sequence[object], keywords: Mapping[str, object], where: str) -> Flag | None:
    """Of a call whose names only its loop, or its caller, tells: what it was given when it was come to."""
    long = [each for each in names if isinstance(each, str) and each.startswith("--") and each.isprintable()]
    default, action, dest = (keywords.get(key) for key in ("default", "action", "dest"))
    switch = isinstance(action, str) and action not in ("store", "append")
    known = isinstance(default, str | int | float) and not isinstance(default, bool)
    truth = "True" if isinstance(default, bool) and not switch else ""
    return Flag(long[0], not switch, str(default) if known else None, keywords.get("required") is True, where,
                dest=dest if isinstance(dest, str) else "", truth=truth,
                computed=default is not None and default is not False and not known) if long else None  # fmt: skip


def _one(keywords: Mapping[str | None, ast.expr]) -> str:
    """ "1" where 0 and 1 are all that may be given."""
    return "1" if "choices" in keywords and ast.unparse(keywords["choices"]).strip("[()]") in ("0, 1", "1, 0") else ""


def _of_absl(call: ast.Call, source: Source) -> Flag | None:
    """``flags.DEFINE_string("out", "x", "what it is")``."""
    kind, name = last_name(call.func), plain(argument(call, "name", 0))
    if not kind.startswith(_OF_ABSL) or name is None:
        return None
    value = argument(call, "default", 1)
    return Flag(
        name=f"--{name}",
        takes_value=not kind.startswith(f"{_OF_ABSL}bool"),
        default=plain(value),
        required=is_true(argument(call, "required")),
        where=source.where(call),
        computed=_is_computed(value),
    )


def _of_docopt(source: Source) -> Iterator[Flag]:
    """``--out=<dir>  Where to. [default: x]`` in the text of the module that ``docopt(__doc__)`` stands in."""
    for call in (each for each in source.calls if last_name(each.func) == "docopt" and each.args):
        modules = (each for each in source.nodes if isinstance(each, ast.Module)
                   and source.file(each) == source.file(call))  # fmt: skip
        text = next((ast.get_docstring(each) for each in modules), None) if _is_doc(call.args[0]) else None
        for each in _BY_DOCOPT.findall(text or ""):
            words, _, says = each.partition("  ")
            names = re.split(r"[\s,=]+", words.strip())
            takes_value = any(not name.startswith("-") for name in names)
            usual = re.search(r"(?i)\[default: *(.*?)\]", says) if takes_value else None
            for name in [name for name in names if name.startswith("--")][:1]:
                yield Flag(name, takes_value, (usual[1] if usual else "") or None, False, source.where(call))


def _is_doc(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "__doc__"


def _is_computed(node: ast.expr | None) -> bool:
    return node is not None and (not isinstance(node, ast.Constant) or node.value is True)


def is_true(node: ast.expr | None) -> bool:
    """Whether True is written there."""
    return isinstance(node, ast.Constant) and node.value is True


def _of_fire(source: Source, arguments: Sequence[str]) -> list[Flag]:
    """Parameters of the function that ``fire.Fire(main)``, ``typer.run(main)``, ``@app.command()`` of typer's or
    jsonargparse's ``CLI(main)`` makes a command of.
    """
    named = {
        _place(name, source): last_name(call.func) in ("CLI", "auto_cli")
        for call in source.calls
        if (last_name(call.func) in ("Fire", "CLI") or source.origin(call.func) in _COMMANDS) and len(call.args) == 1
        for each in ast.walk(call.args[0])
        if isinstance(each, ast.Name)
        for name in [_chosen(each, source, arguments)]
    }
    if "typer" in source.packages:
        commands = (each for each in source.nodes if isinstance(each, Function) and _is_command(each))
        named |= {(source.file(each), each.name): False for each in commands}
    by_name = any(word.arg == "as_positional" and ast.unparse(word.value) == "False" for call in source.calls
                  for word in call.keywords)  # fmt: skip
    found = []
    for function in source.nodes:
        if isinstance(function, Function) and (function_of := (source.file(function), function.name)) in named:
            names = [*function.args.args]
            defaults = [None] * (len(names) - len(function.args.defaults)) + [*function.args.defaults]
            for each, written in zip(names, defaults, strict=True):
                value = None if written is None else default_of(written)
                value = None if value is not None and ast.unparse(value).startswith("typer.") else value
                says = ast.unparse(each.annotation) if each.annotation is not None else ""
                switch = isinstance(value, ast.Constant) and isinstance(value.value, bool) and says in ("", "bool")
                # jsonargparse wants a value of a switch, too.
                name = f"{_own_name(written) or f'--{each.arg}'}{'=true' * (switch and named[function_of])}"
                # What jsonargparse requires has a place, and no name unless it is asked for.
                required = value is None and (not named[function_of] or by_name)
                found.append(Flag(name, not switch, plain(value), required, source.where(each), dest=each.arg))
    return found


def _chosen(name: ast.Name, source: Source, arguments: Sequence[str]) -> ast.Name:
    """Of a table of commands the one that the arguments name: ``CLI({"train": setup})``."""
    tables = (node.value for node in source.nodes if isinstance(node, ast.Assign) and source.file(node) ==
              source.file(name) and name.id in map(last_name, node.targets))  # fmt: skip
    known = (value for each in tables for key, value in written_out(each) if key in arguments)
    return next((each for each in known if isinstance(each, ast.Name)), name)


def _place(name: ast.Name, source: Source) -> tuple[str, str]:
    """The file in which a function stands, and what it is called there."""
    module, _, own = source.origin(name).rpartition(".")
    ending = f"/{module.replace('.', '/')}.py"
    file = next((file for file, path in source.paths.items() if module and str(path).endswith(ending)), None)
    return (source.file(name), name.id) if file is None else (file, own)


def _is_command(function: Function) -> bool:
    says = [ast.unparse(each) for each in function.decorator_list]
    return any(".command" in each and not each.startswith("click.") for each in says)


def _own_name(written: ast.expr | None) -> str:
    """``--out-dir`` of ``typer.Option("x", "--out-dir", "-o")``; "" for a parameter whose flag has its own name."""
    names = [plain(each) or "" for each in written.args] if isinstance(written, ast.Call) else []
    return next((name for name in names if name.startswith("--")), "")
