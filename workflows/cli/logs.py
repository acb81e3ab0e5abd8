"""``argosy logs``: what the pods and ranks wrote, one line at a time, each with its pod."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.finding import Run, find, told_deleted
from argosy.workflows.cli.options import as_json, place_or_here, run_id, state_dir
from argosy.workflows.cli.output import emit, next_commands, say
from argosy.workflows.cli.run_folder import ENDED, RunFolder
from argosy.workflows.cluster.place import ClusterPlace

Wanted = Callable[[str], bool]
POLL_SECONDS = 0.5
RANK = re.compile(r"^\[(?:rank ?|default)?(\d+)\]:?\s?")
"""The prefix of a line that one rank wrote."""


@click.command()
@run_id
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@click.option("--rank", type=click.IntRange(min=0), help="Only lines of this global rank.")
@click.option("--pod", help="Only pods whose name contains this.")
@click.option("--tail", type=click.IntRange(min=0), help="Only the last lines of each pod, this many.")
@place_or_here
@as_json
@state_dir
def command(
    run_id: str | None,
    follow: bool,
    rank: int | None,
    pod: str | None,
    tail: int | None,
    place: ClusterPlace,
    as_json: bool,
    state_dir: Path,
) -> None:
    """Print what the pods and ranks of a run wrote.

    \b
    Example:
      argosy logs -f
      argosy logs gpt-x7k2p --rank 1 --tail 50
      argosy logs -f gpt-x7k2p -n research
    """
    run = find(state_dir, run_id, place)
    if as_json:
        if follow:
            raise InputError(
                "--json with --follow: one object has an end, a followed log has none; leave one of them out"
            )
        emit({"run_id": run.name, "lines": list(records(run, follow, rank, pod, tail))})
        return
    from argosy.workflows.cluster.run import ClusterRun

    printed, seen = False, run.state() if follow and isinstance(run, ClusterRun) else {}
    for record in records(run, follow, rank, pod, tail):
        printed = True
        say(f"{record['pod']} | {record['text']}")
    if seen and isinstance(run, ClusterRun) and run.is_gone():
        return told_deleted(run, seen)
    if not printed and tail != 0:
        named = ("" if rank is None else f" of rank {rank}") + (f" of pods named {pod!r}" if pod else "")
        click.echo(f"no lines{named} in {run.where}{_why_none(run, named)}", err=True)
    next_commands([(run.command("explain", run.name), "what it means")], err=True)


def _why_none(run: Run, named: str) -> str:
    if isinstance(run, RunFolder):
        return ""
    if run.state()["phase"] not in ("Succeeded", "Failed", "Error"):
        return " so far"
    return "" if named else ": no pod of it is there, and nothing that one wrote is kept"


def records(run: Run, follow: bool, rank: int | None, pod: str | None, tail: int | None) -> Iterator[dict[str, Any]]:
    """What pods wrote, a line each: ``pod``, ``rank`` (None: no rank's), ``text``."""

    def wanted(line: str) -> bool:
        return rank is None or _rank(line) == rank

    for name, line in _lines(run, follow, wanted, pod or "", tail):
        yield {"pod": name, "rank": _rank(line), "text": line}


def _rank(line: str) -> int | None:
    match = RANK.match(line)
    return int(match[1]) if match else None


def _lines(run: Run, follow: bool, wanted: Wanted, pod: str, tail: int | None) -> Iterator[tuple[str, str]]:
    if isinstance(run, RunFolder):
        return _followed(run, wanted, pod, tail) if follow else _written(run, wanted, pod, tail)
    from argosy.workflows.cluster.run import ClusterRun
    from argosy.workflows.cluster.stored_run import StoredRun

    if isinstance(run, ClusterRun) and follow:
        return run.followed(wanted, pod, tail)
    if isinstance(run, ClusterRun | StoredRun) and not follow:
        return run.written(wanted, pod, tail)
    raise InputError("--follow: a run's place in the store has no pods; name its workflow, and the namespace with -n")


class _Log:
    """One pod's log file, read on from where the last look ended."""

    def __init__(self, path: Path) -> None:
        self.path, self.pod = path, path.parent.name
        self._offset = 0

    def lines(self, *, last: bool) -> list[str]:
        """Whole lines that are new; with ``last`` also one without its end."""
        try:
            with self.path.open("rb") as source:
                source.seek(self._offset)
                data = source.read()
        except OSError:
            return []
        if not last:
            data = data[: data.rfind(b"\n") + 1]
        self._offset += len(data)
        # Not splitlines: a rank that prints a vertical tab would begin a line in another rank's name.
        lines = data.decode(errors="replace").split("\n")
        return [line.rstrip("\r") for line in (lines if lines[-1] else lines[:-1])]


class RankLines:
    """What the ranks of a run of this machine write, each line once."""

    def __init__(self, *, skip: bool) -> None:
        """``skip``: what was written before the first look was shown by somebody else."""
        self._known: dict[Path, _Log] = {}
        self._skip = skip

    def new(self, run: object) -> list[str]:
        """Whole lines since the last look; none of a run of a cluster."""
        if not isinstance(run, RunFolder):
            return []
        found = [self._known.setdefault(log.path, log) for log in _logs(run, "")]
        lines = [line for log in found for line in log.lines(last=False) if _rank(line) is not None]
        skipped, self._skip = self._skip, False
        return [] if skipped else lines


def _logs(folder: RunFolder, pod: str) -> list[_Log]:
    """Oldest pod first; a log lies at ``nodes/NODE/pods/POD/log``."""
    found = [path for path in folder.path.glob("nodes/*/pods/*/log") if path.is_file()]
    known = [path for path in found if pod in path.parent.name]
    return [_Log(path) for path in sorted(known, key=lambda path: (_birth(path), path.parent.name))]


def _birth(path: Path) -> float:
    try:
        return (
            path.parent.stat().st_ctime
            if not (path.parent / "root").exists()
            else (path.parent / "root").stat().st_ctime
        )
    except OSError:
        return 0.0


def _written(folder: RunFolder, wanted: Wanted, pod: str, tail: int | None) -> Iterator[tuple[str, str]]:
    for log in _logs(folder, pod):
        yield from _last(log, [line for line in log.lines(last=True) if wanted(line)], tail)


def _last(log: _Log, lines: list[str], tail: int | None) -> Iterator[tuple[str, str]]:
    return ((log.pod, line) for line in (lines if tail is None else lines[len(lines) - min(tail, len(lines)) :]))


def _followed(folder: RunFolder, wanted: Wanted, pod: str, tail: int | None) -> Iterator[tuple[str, str]]:
    """Lines as they come; ends after the look that follows the end of the run, or of whoever ran it."""
    logs: dict[Path, _Log] = {}
    first = True
    while True:
        state = folder.standing()
        done = state.get("phase") in ENDED or ("phase" in state and bool(state["interrupted"]))
        for log in _logs(folder, pod):
            logs.setdefault(log.path, log)
        for log in logs.values():
            yield from _last(log, [line for line in log.lines(last=done) if wanted(line)], tail if first else None)
        if done:
            return
        first = False
        time.sleep(POLL_SECONDS)
