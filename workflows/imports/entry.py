"""What the pods start: the script, its arguments, and what a shell does before."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.placeholders import as_it_is
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.besides import Surroundings, take_image_arguments
from argosy.workflows.imports.commands import Started, container_commands, line_commands, peeled
from argosy.workflows.imports.draft import Draft
from argosy.workflows.imports.launchers import MEETING, WHY, Does, Launch, Option, read_launch
from argosy.workflows.imports.masking import masked
from argosy.workflows.imports.source import Source
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.shell import SHELLS, Command, read_script
from argosy.workflows.manifests.word import Values, Word, fill, join

_TOOLS: Final = ("pip", "venv", "ensurepip", "http.server", "json.tool")  # python -m of them trains nothing
_REMEDY: Final = "give --script PATH (in the image) or --module NAME"
_GUESS: Final = "/workspace"


@dataclass(slots=True)
class Entry:
    """The command that trains.

    Args:
        launch: what starts the ranks.
        ranks: processes per node that it is told: a number, ``gpu``, ``cpu``, ``auto``; ``""`` when it is not.
        total: ranks of the whole gang, where that is what it is told.
        nodes: what it is told of nodes: ``2``, ``1:4``.
        assignments: variables that the text around it sets: the value, and the word that sets it.
    """

    launch: Launch
    command: Command
    ranks: str = ""
    total: int | None = None
    nodes: str = ""
    assignments: dict[str, tuple[str | None, Word]] = field(default_factory=dict)


def take_entry(
    source: Source, container: Container, bundle: Bundle, draft: Draft, account: Account, given: tuple[str, str]
) -> Entry | None:
    """Write ``script`` or ``module``, ``args`` and ``working_dir``.

    ``given``: (--script, --module) of the command line.

    Raises:
        InputError: nothing says what is run.
    """
    starter = source.starts.pod.main if source.starts is not None else container
    starter = starter if starter is not None else container
    if source.entrypoint is not None:
        known = {name: each.value for name, each in bundle.environment(container).items()}
        started = line_commands(source.entrypoint, known)
    else:
        started = container_commands(starter, bundle)
    values = Values(dict(started.values.known), started.values.positional)
    around = Surroundings(draft, account, values, source.workload.document.name)
    of_image = any(given) and not starter.node["command"]
    entry = _read(started, around, silent=of_image)
    if entry is None and not any(given):
        raise InputError(_nothing(starter, started))
    if not started.whole:
        why = "the shell's text could not be read whole: compare what it does"
        account.advise(container.node["args"] or container.node, why, "script")
    if container.node["workingDir"]:
        draft.put("working_dir", container.node["workingDir"].text, container.node["workingDir"])
        account.kept(container.node["workingDir"], "working_dir")
    if around.folder is not None:
        draft.put("working_dir", around.folder, around.folder_word.node if around.folder_word else None)
    if entry is not None:
        _write(entry, around, source.launcher)
    elif of_image:
        take_image_arguments(starter, draft, account)
    for name, value in zip(("script", "module"), given, strict=True):
        if value:
            draft.drop("script")
            draft.drop("module")
            draft.put(name, value)
    _working_dir(container, draft, account)
    for node in starter.argv if source.entrypoint is None else []:
        account.rest(node, "argosy starts the script itself, without a shell")
    return entry


def _nothing(container: Container, started: Started) -> str:
    place = f"container {container.name!r} (line {container.node.line})"
    if started.unread:
        why = f"it starts {started.unread!r}, a script of the image that only the image holds"
    elif container.node["command"].is_scalar or container.node["args"].is_scalar:
        why = "command and args are lists of words in Kubernetes, and here one is not"
    elif started.commands:
        shown = " ".join((started.commands[-1].part or _shown(started.commands[-1].words)).split())[:80]
        why = f"{masked(shown)!r} starts no Python script that can be read here"
    else:
        why = "no command, so only its image knows what it runs"
    return f"{place}: {why}; {_REMEDY}"


def _shown(words: Sequence[Word]) -> str:
    return " ".join(word.source for word in words)


# ---- finding it


def _read(started: Started, around: Surroundings, *, silent: bool) -> Entry | None:
    """The training among the commands; what stands before it is accounted for as it is met.

    ``silent``: where none of them is one, they are no commands.
    """
    launches = [_launch(command, around.values) for command in started.commands]
    chosen = _choose(launches)
    if chosen is None and silent:
        return None
    entry: Entry | None = None
    for index, command in enumerate(started.commands):
        launch = launches[index]
        if index == chosen and launch is not None:
            entry = Entry(launch, command, assignments=dict(around.exported))
            wrappers, _, _ = peeled(command.words, around.values)
            around.before([*wrappers, *launch.before], entry.assignments)
            for each in command.assignments:
                entry.assignments[each.name] = around.value(each), each.value
        else:
            around.command(command, after=entry is not None)
    return entry


def _choose(launches: Sequence[Launch | None]) -> int | None:
    """The first that starts ranks, else the last Python script; one that is not in a branch before one that is."""
    found = [index for index, launch in enumerate(launches) if launch is not None and launch.entry]
    ranks = [index for index in found if (launches[index] or _NONE).launcher != "python"]
    plain = [index for index in found if index not in ranks][::-1]
    return next(iter([*ranks, *plain]), None)


_NONE: Final = Launch("", [])


def _launch(command: Command, values: Values) -> Launch | None:
    if not command.words or command.inside == "a function":
        return None
    rest = peeled(command.words, values)[2]
    launch = read_launch(rest, values) if rest else None
    if launch is not None and launch.module and launch.entry and launch.entry[0].literal in _TOOLS:
        return None
    if launch is None or launch.launcher != "mpirun":
        return launch
    return _inner(launch, values)


def _inner(launch: Launch, values: Values) -> Launch | None:
    """``mpirun … python train.py``: what every rank is told to start."""
    before, program, rest = peeled(launch.entry, values)
    if posixpath.basename(program) in SHELLS and len(rest) > 2 and rest[-1].literal is not None:
        commands, _ = read_script(rest[-1].literal or "", rest[-1].node)
        rest = next((list(each.words) for each in reversed(commands) if each.words), [])
        rest = [replace(word, part=rest[-1].part) for word in rest] if rest else []
        before, _, rest = peeled(rest, values)
    inner = read_launch(rest, values) if rest else None
    if inner is None or inner.launcher != "python" or not inner.entry:
        return None
    launch.before += before
    launch.head += inner.head
    launch.options += inner.options
    launch.entry, launch.module = inner.entry, inner.module
    return launch


# ---- writing it


def _write(entry: Entry, around: Surroundings, launcher: str) -> None:
    launch, draft, account = entry.launch, around.draft, around.account
    first = fill(launch.entry[0], around.values)
    if first.missing or not first.words or not first.words[0]:
        place = f"line {launch.entry[0].node.line}"
        raise InputError(
            f"{place}: {masked(launch.entry[0].source)[:80]!r} names no script that is known here; {_REMEDY}"
        )
    for word in join(launch.head):
        if launcher == "plain":
            account.changed(word, "argosy's launch starts the ranks itself", "gang.launcher")
        elif launch.launcher in ("torchrun", "python"):
            account.changed(word, "argosy starts torchrun", "gang.launcher")
        else:
            account.changed(word, f"{launch.runs_with or 'torchrun'} starts the ranks", "gang.launcher")
    for option in launch.options:
        _option(option, entry, around)
    field = "module" if launch.module else "script"
    text = first.words[0]
    draft.put(field, text if launch.module else _path(text, draft), launch.entry[0].node)
    _arguments(entry, first.words[1:], around, field)
    around.branch(entry.command)
    _habits(launch, account)


def _path(text: str, draft: Draft) -> str:
    """A script's path without ``./`` and ``..``."""
    if text.startswith("/"):
        return posixpath.normpath(text)
    path = posixpath.normpath(text)
    folder = draft.get("working_dir", "")
    return posixpath.normpath(posixpath.join(folder, path)) if path.startswith("..") and folder else path


def _arguments(entry: Entry, first: list[str], around: Surroundings, field: str) -> None:
    script, *words = entry.launch.entry
    kept, missing = [script], list[str]()
    for text in first:  # torchrun $CMD
        around.draft.append("args", as_it_is(text), script.node)
    for word in words:
        found = fill(word, around.values)
        for text in found.words:
            around.draft.append("args", as_it_is(text), word.node)
        if found.missing:
            shown = ", ".join(dict.fromkeys(found.missing))
            around.account.by_hand(word, f"{shown} has no value in the files: write it in place of FILL-IN", "args")
            missing += dict.fromkeys(found.missing)
        elif (pod := next(filter(None, map(around.pod, found.words)), "")) != "":
            around.account.by_hand(word, f"no gang has a pod {pod}: {MEETING}", "args")
            around.draft.note("args", f"{pod} is no pod of the gang: {MEETING}")
        elif found.used:
            names = ", ".join(dict.fromkeys(found.used))
            around.account.changed(word, f"written with the value of {names}", "args")
        else:
            kept.append(word)
    if missing:
        shown = " ".join(masked(", ".join(dict.fromkeys(missing))).split())
        around.draft.note("args", f"FILL-IN stands for {shown if len(shown) <= 80 else 'what only a pod knows'}")
    for word in join(kept) if all(each.part for each in kept) else kept:
        into = field if word is script else f"{field}, args" if script.part and word.part else "args"
        around.account.kept(word, into)


_RANKS: Final = "gang.nproc_per_node"


def _option(option: Option, entry: Entry, around: Surroundings) -> None:
    account, words = around.account, join(option.words)
    shown = f"{entry.launch.launcher} --{option.name}"
    if option.does is Does.RANKS:
        entry.ranks = option.value or ""
        for word in words:
            if entry.ranks.isdigit() or entry.ranks in ("gpu", "auto", "cpu", "xpu"):
                account.kept(word, "gang.nproc_per_node")
            else:
                account.by_hand(word, f"the number is filled in later: write {_RANKS}", _RANKS)
        return
    if option.does is Does.TOTAL and (option.value or "").isdigit():
        entry.total = int((option.value or "0")[:9])
    if option.does is Does.NODES:
        entry.nodes = option.value or ""
    if option.does is Does.ASSIGN:
        around.assign(option, entry.assignments)
        return
    for word in words:
        if option.does is Does.VARIABLE and option.value is not None:
            value = option.value if len(option.words) > 1 or "=" in option.words[0].source else "true"
            entry.assignments[option.variable] = value, option.words[0]
            account.changed(word, f"{option.variable} says the same to every rank", f"env.{option.variable}")
        elif option.does is Does.MODULE:
            account.kept(word, "module")
        elif option.does is Does.PROGRAM:
            raise InputError(f"line {word.node.line}: {shown}: {WHY[Does.PROGRAM]}; {_REMEDY}")
        elif option.does in WHY:
            account.changed(word, WHY[option.does])
        else:
            account.lost(word, f"{shown} has no place: argosy starts torchrun itself")


def _habits(launch: Launch, account: Account) -> None:
    head = launch.head[0]
    if launch.launcher in ("deepspeed", "torch.distributed.launch"):
        why = f"{launch.launcher} passes --local_rank to the script, torchrun does not: read LOCAL_RANK"
        account.advise(head.node, why, "script")
    if any(option.name in ("config-file",) for option in launch.options):
        why = "accelerate's config file is not read: say what it says in [env] or in the script"
        account.advise(head.node, why, "env")


def _working_dir(container: Container, draft: Draft, account: Account) -> None:
    script = draft.get("script", "")
    if script and not script.startswith("/") and not draft.get("working_dir"):
        draft.put("working_dir", _GUESS)
        draft.note("working_dir", "a guess: the image's WORKDIR, where the script lies")
        why = f"{script!r} is relative to the image's WORKDIR, which no manifest says: {_GUESS} is a guess"
        account.advise(container.node, why, "working_dir")
    if not draft.get("working_dir", "/").startswith("/"):
        draft.drop("working_dir")
