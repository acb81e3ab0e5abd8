"""What the pods start: the script, its arguments, and what a shell does before."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from argosy.steps.contract.errors import InputError
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.imports.source import Source
from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.process import Process, processes

_LAUNCHERS = ("torchrun", "torch.distributed.launch", "accelerate", "deepspeed", "mpirun", "mpiexec", "horovodrun")
_MET = frozenset(
    [
        "nnodes",
        "node-rank",
        "master-addr",
        "master-port",
        "rdzv-backend",
        "rdzv-endpoint",
        "rdzv-id",
        "rdzv-conf",
        "standalone",
        "local-addr",
        "num-nodes",
        "hostfile",
        "num-machines",
        "machine-rank",
        "main-process-ip",
        "main-process-port",
    ]
)
_COUNTED = ("nproc-per-node", "num-gpus", "num_gpus", "gpus-per-node")
_REFERENCE = re.compile(r"\$\(([A-Za-z_]\w*)\)|\$\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)")


@dataclass(slots=True)
class Entry:
    """The command that trains.

    Args:
        assignments: variables that the text around it sets, by name.
        ranks: processes per node that its launcher is told, None when it is not.
    """

    process: Process
    ranks: int | None = None
    assignments: dict[str, str] = field(default_factory=dict)


def take_entry(
    source: Source, container: Container, bundle: Bundle, draft: Draft, account: Account, given: tuple[str, str]
) -> Entry | None:
    """Write ``script`` or ``module``, ``args`` and ``working_dir``.

    Args:
        given: (--script, --module) of the command line.

    Raises:
        InputError: nothing says what is run.
    """
    found = _commands(source, container, bundle)
    chosen = _training(found)
    script, module = given
    if chosen is None and not script and not module:
        raise InputError(
            f"container {container.name!r} (line {container.node.line}): no command that starts a Python script, so "
            "only its image knows what it runs; give --script PATH (in the image) or --module NAME"
        )
    for key in ("command", "args"):
        account.kept(container.node[key], "script, args")
    if source.entrypoint is not None:
        account.kept(source.entrypoint, "script, args")
    if container.node["workingDir"]:
        draft.put("working_dir", container.node["workingDir"].text)
        account.kept(container.node["workingDir"], "working_dir")
    for process in found:
        if process is not chosen:
            _besides(process, draft, account)
    entry = Entry(chosen) if chosen is not None else None
    if entry is not None:
        _launched(entry, container, bundle, draft, account)
    if script:
        draft.put("script", script)
    if module:
        draft.put("module", module)
    return entry


def _commands(source: Source, container: Container, bundle: Bundle) -> list[Process]:
    if source.entrypoint is not None:
        shell = [_word(source.entrypoint, "sh"), _word(source.entrypoint, "-c"), source.entrypoint]
        return processes(shell)
    starter = source.starts.pod.main if source.starts is not None else container
    return list(bundle.processes(starter if starter is not None else container))


def _word(place: Node, text: str) -> Node:
    from argosy.workflows.lint.view.made import made_text

    return made_text(place, text)


def _training(found: list[Process]) -> Process | None:
    launched = [each for each in found if each.program in _LAUNCHERS and each.operands]
    python = [each for each in found if each.program == "python" and _python_entry(each.words[1:]) is not None]
    return next(iter([*launched, *reversed(python)]), None)


def _launched(entry: Entry, container: Container, bundle: Bundle, draft: Draft, account: Account) -> None:
    process = entry.process
    words = list(process.operands if process.program in _LAUNCHERS else process.words[1:])
    if process.program in _LAUNCHERS:
        words = _strip_python(words)
        _options(entry, account)
    entry.assignments = {each.name: each.value for each in process.assignments if each.value is not None}
    known = {name: variable.value for name, variable in bundle.environment_of(process, container).items()}
    module = "m" in process.options or "module" in process.options
    parsed = (_Parsed(module=words[0], args=words[1:]) if module and words else _python_entry(words)) if words else None
    if parsed is None:
        raise InputError(
            f"container {container.name!r} (line {process.node.line}): {process.text[:80]!r} starts no Python script; "
            "give --script PATH (in the image) or --module NAME"
        )
    draft.put("script" if parsed.script else "module", parsed.script or parsed.module)
    arguments = [_filled(word, known, process, account) for word in parsed.args]
    if arguments:
        draft.put("args", arguments)


@dataclass(frozen=True, slots=True)
class _Parsed:
    script: str = ""
    module: str = ""
    args: list[str] = field(default_factory=list)


def _python_entry(words: list[str] | tuple[str, ...]) -> _Parsed | None:
    """What ``python`` is told: its own options are left out."""
    for index, word in enumerate(words):
        if word == "-m" and index + 1 < len(words):
            return _Parsed(module=words[index + 1], args=list(words[index + 2 :]))
        if word == "-c":
            return None
        if not word.startswith("-"):
            is_script = word.endswith(".py") or "/" in word
            return _Parsed(script=word.removeprefix("./"), args=list(words[index + 1 :])) if is_script else None
    return None


def _strip_python(words: list[str]) -> list[str]:
    """``mpirun … python train.py`` starts the script by name of the interpreter."""
    rest = words
    while rest and ("=" in rest[0] and not rest[0].startswith("-")):
        rest = rest[1:]
    if rest and re.fullmatch(r"(.*/)?python[\d.]*", rest[0]):
        rest = rest[1:]
        while rest and rest[0] in ("-u", "-O", "-B"):
            rest = rest[1:]
    return rest


def _options(entry: Entry, account: Account) -> None:
    process = entry.process
    for name, value in process.options.items():
        shown = f"--{name}={value}" if value else f"--{name}"
        if name in _COUNTED:
            entry.ranks = int(value) if value.isdigit() else entry.ranks
        elif name in _MET:
            account.changed(process.node, f"{process.program} {shown}: ranks meet over argosy's channel")
        elif name == "max-restarts":
            account.changed(process.node, f"{process.program} {shown}: argosy's supervisor owns restarts: see [retry]")
        elif name in (
            "np",
            "n",
            "hosts",
            "H",
            "host",
            "x",
            "bind-to",
            "map-by",
            "mca",
            "allow-run-as-root",
            "m",
            "module",
        ):
            continue
        else:
            account.lost(
                process.node, f"{process.program} {shown}: argosy starts torchrun itself; pass it in another way"
            )


def _filled(word: str, known: Mapping[str, str | None], process: Process, account: Account) -> str:
    """A word with the variables in it, where their values are known."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2] or found[3]
        held = known.get(name)
        if held is None or (found[1] is None and not process.in_shell):
            account.by_hand(process.node, f"the argument {word!r} holds {found[0]}, whose value is not in the file")
            return name
        account.changed(process.node, f"the argument {word!r} is written with the value of {name}", "args")
        return held

    return _REFERENCE.sub(value, word)


def _besides(process: Process, draft: Draft, account: Account) -> None:
    """Other commands of the script: a folder to work in, or something that has no place."""
    if process.program == "cd" and len(process.words) == 2 and process.words[1].startswith("/"):
        draft.put("working_dir", process.words[1])
        account.changed(process.node, f"{process.text[:60]!r} is the run's working_dir", "working_dir")
    elif process.program in (
        "set",
        "echo",
        "true",
        "ulimit",
        "date",
        "env",
        "printenv",
        "hostname",
        "nvidia-smi",
        "ls",
    ):
        account.changed(process.node, f"{process.text[:60]!r} is left out: it does nothing for the training")
    elif process.program in ("pip", "pip3", "apt-get", "apt", "conda", "uv"):
        account.by_hand(
            process.node, f"{process.text[:80]!r}: build it into the image, every start pays for it otherwise"
        )
    elif process.program in ("aws", "s5cmd", "gsutil", "gcloud", "rclone", "azcopy"):
        account.by_hand(
            process.node, f"{process.text[:80]!r}: argosy stages data before the GPUs wait: write [dataset] uri"
        )
    else:
        account.lost(process.node, f"{process.text[:80]!r}: a run starts one script; do this in it, or in the image")
