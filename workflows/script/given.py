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
    named, words, command = _placed(arguments, source, flags)
    many = (name for name, nargs in named.items() if nargs.endswith(("REMAINDER", "'*'", "'...'")))
    return {**command, **dict.fromkeys(many, ""), **dict(zip(named, words, strict=False))}


def several(arguments: Sequence[str], source: Source, flags: Sequence[Flag]) -> Mapping[str, list[str]]:
    """The words of each of those that takes all that are left."""
    named, words, _ = _placed(arguments, source, flags)
    found = {name: words[place:] for place, (name, nargs) in enumerate(named.items())
             if nargs.endswith(("REMAINDER", "'*'", "'...'", "'+'"))}  # fmt: skip
    return {name: left for name, left in found.items() if left}


def _placed(
    arguments: Sequence[str], source: Source, flags: Sequence[Flag]
) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """The arguments that are no flags, and how many words each takes; the words; the command that is one of them."""
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
    nargs = {name: argument(call, "nargs") for name, call in calls.items()}
    named = {name: "" if each is None else ast.unparse(each) for name, each in nargs.items()}
    return named, [word for word in words if word not in command.values()], command
