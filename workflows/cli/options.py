"""Options that several verbs share, worded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.run_folder import STATE_DIR, every_run
from argosy.workflows.cluster.place import ClusterPlace

Verb = TypeVar("Verb", bound=Callable[..., Any])

LARGEST = 100_000
"""More nodes or ranks than any machine room has: a number above it is a slip of the finger."""


def as_json(verb: Verb) -> Verb:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object with stable keys instead.")(verb)


def state_dir(verb: Verb) -> Verb:
    """``--state-dir``."""
    return click.option(
        "--state-dir",
        type=click.Path(path_type=Path),
        default=STATE_DIR,
        show_default=True,
        envvar="ARGOSY_STATE_DIR",
        callback=_folder,
        help="Folder with the runs and volumes of this machine.",
    )(verb)


def place(verb: Verb) -> Verb:
    """``--kubeconfig``, ``--context`` and ``-n``, as one argument ``place``; what is left out, as kubectl takes it."""
    return _place("Namespace of the cluster. [default: the context's]")(verb)


def place_or_here(verb: Verb) -> Verb:
    """The same of a verb that means this machine when none of the three is given."""
    return _place("Namespace of a cluster. [default: with --context its own, else this machine]")(verb)


def place_given(verb: Verb) -> Verb:
    """The same of a verb that needs a namespace."""
    return _place("Namespace that all of it is for; always given.")(verb)


def _place(meaning: str) -> Callable[[Verb], Verb]:
    return lambda verb: _placed(verb, meaning)


def _placed(verb: Verb, meaning: str) -> Verb:
    @wraps(verb)
    def called(*args: Any, kubeconfig: str, context: str, namespace: str, **rest: Any) -> Any:
        return verb(*args, place=ClusterPlace(kubeconfig, context, namespace), **rest)

    named: Callable[..., Any] = called
    for flag, text in (
        (("--kubeconfig",), "File that says how clusters are reached. [default: $KUBECONFIG, ~/.kube/config]"),
        (("--context",), "Which of its contexts. [default: the current one]"),
        (("-n", "--namespace"), meaning),
    ):
        named = click.option(*flag, default="", help=text)(named)
    return cast(Verb, named)


def run_id(verb: Verb) -> Verb:
    """The optional argument ``RUN_ID``."""
    return click.argument("run_id", required=False, shell_complete=known_runs)(verb)


def known_runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The runs of this machine that a shell completes, newest first."""
    return [run.name for run in every_run(ctx.params["state_dir"]) if run.name.startswith(incomplete)]


def ranks(verb: Verb) -> Verb:
    """``-j NxP``."""
    return ranks_meaning("N nodes with P ranks each instead of what the file says; drops the request for GPUs.")(verb)


def ranks_meaning(text: str) -> Callable[[Verb], Verb]:
    """``-j NxP`` with a help of its own."""
    return click.option("-j", "--ranks", metavar="NxP", callback=_ranks, help=text)


def output(text: str, *, stdout: bool = False) -> Callable[[Verb], Verb]:
    """``-o FILE``; ``text`` is its help; ``stdout``: the verb writes there without it, and with ``-``."""
    callback = _file_or_stdout if stdout else _file
    return click.option("-o", "--output", type=click.Path(path_type=Path), callback=callback, help=text)


def _file_or_stdout(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    return None if value == Path("-") else _file(ctx, param, value)


def _file(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    if value == Path("-"):
        raise InputError("--output -: this does not go to standard output; name a file")
    if value is not None and (not value.name or value.is_dir()):
        raise InputError(f"--output {value}: is a folder; name a file in it")
    return value


def _folder(ctx: click.Context, param: click.Parameter, value: Path) -> Path:
    if value.exists() and not value.is_dir():
        raise InputError(f"--state-dir {value}: is a file; name a folder")
    try:
        return value.absolute()
    except FileNotFoundError:
        raise InputError(
            f"--state-dir {value}: the folder that you are in was removed; go to one that is there"
        ) from None


def _ranks(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    nodes, cross, each = value.partition("x")
    if cross and all(part.isascii() and part.isdigit() and len(part) <= 9 for part in (nodes, each)):
        shape = int(nodes), int(each)
        if all(1 <= part <= LARGEST for part in shape):
            return shape
        if max(shape) > LARGEST:
            raise InputError(
                f"-j {value!r}: more than {LARGEST} nodes, or ranks on each; write -j 2x4 for 2 nodes with 4"
            )
    raise InputError(f"-j {value!r}: not a number of nodes and of ranks on each; write -j 2x4 for 2 nodes with 4 ranks")
