"""What the command line gives a script's flags, and the arguments that are none."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from argosy.workflows.script.flags import Flag
from argosy.workflows.script.source import Source, argument, last_name, plain

_OF_YACS = re.compile(r"[A-Z][A-Z0-9_]*(\.[A-Z0-9_]+)*")


def given(arguments: Sequence[str], flags: Sequence[Flag]) -> Mapping[str, str | None]:
    """``--out x``, ``-out x``, ``--out=x``, Hydra's ``a.out=x`` as {"out": "x"}, also yacs' ``OUT x``; alone: None."""
    told: dict[str, str | None] = {}
    attributes = {name: flag.attribute for flag in flags for name in (*flag.aliases, flag.name)}
    for index, word in enumerate(arguments):
        flag, equals, value = word.partition("=")
        if equals and f"{flag.lstrip('+')}=" in attributes:
            told[attributes[f"{flag.lstrip('+')}="]] = value
        after = arguments[index + 1] if index + 1 < len(arguments) else None
        if _OF_YACS.fullmatch(word):
            told |= {word: after, word.rpartition(".")[2]: after}
        elif flag.startswith("-"):
            flag = flag if flag in attributes else next(iter(shortened(flag, flags)), flag)
            told[attributes.get(flag, flag.lstrip("-").replace("-", "_"))] = value if equals else after
    return told


def shortened(word: str, flags: Sequence[Flag]) -> list[str]:
    """The one flag that argparse takes a word for which only begins its name: ``--exp`` for ``--experiment``."""
    known = [flag.name for flag in flags if word[:2] == "--" and len(word) > len("--") and flag.name.startswith(word)]
    return known if len(known) == 1 else []


def by_place(arguments: Sequence[str], source: Source, flags: Sequence[Flag]) -> Mapping[str, str]:
    """What the command line gives the arguments that are no flags; nothing, "", to one that may have any number."""
    taken, many, command = _placed(arguments, source, flags)
    return {**command, **{name: next(iter(words), "") for name, words in taken.items() if words or name in many}}


def several(arguments: Sequence[str], source: Source, flags: Sequence[Flag]) -> Mapping[str, list[str]]:
    """The words of each of those that takes all that are left."""
    taken, many, _ = _placed(arguments, source, flags)
    return {name: words for name, words in taken.items() if words and name in many}


def _placed(
    arguments: Sequence[str], source: Source, flags: Sequence[Flag]
) -> tuple[dict[str, list[str]], dict[str, ast.Call], dict[str, str]]:
    """The words of each argument that is no flag; those that take what is left; the command that is a word."""
    calls = {name: call for call in source.calls if last_name(call.func) == "add_argument" and call.args
             and (name := plain(call.args[0])) and not name.startswith("-")}  # fmt: skip
    switches = {each for flag in flags if not flag.takes_value for each in (flag.name, *flag.aliases)}
    words, skip = list[str](), False
    for word in arguments:
        if not skip and not word.startswith("-"):
            words.append(word)
        skip = word.startswith("-") and "=" not in word and word not in switches
    commands = [plain(call.args[0]) for call in source.calls if last_name(call.func) == "add_parser" and call.args]
    kept = [plain(argument(call, "dest")) for call in source.calls if last_name(call.func) == "add_subparsers"]
    command = {name: word for name in kept if name for word in words if word in commands}
    words = [word for word in words if word not in command.values()]
    taken, many = dict[str, list[str]](), dict[str, ast.Call]()
    for place, (name, call) in enumerate(calls.items()):
        number, nargs = 1, argument(call, "nargs")
        if nargs is not None and ast.unparse(nargs).endswith(("REMAINDER", "'*'", "'...'", "'+'")):
            many[name] = call
            after = [each for each in [*calls.values()][place + 1 :] if argument(each, "nargs") is None]
            of_one = sum(ast.dump(each.func) == ast.dump(call.func) for each in after)  # parser; each has one word
            number = max(0, len(words) - of_one)
        taken[name], words = words[:number], words[number:]
    return taken, many, command
