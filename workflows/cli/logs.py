"""``argosy logs``: what the pods and ranks wrote, one line at a time, each with its pod."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import click

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.options import as_json, run_id, state_dir
from argosy.workflows.cli.output import emit, next_commands, say
from argosy.workflows.cli.run_folder import RunFolder, find_run

POLL_SECONDS = 0.5
RANK = re.compile(r"^\[(?:rank ?|default)?(\d+)\]:?\s?")
"""The prefix of a line that one rank wrote."""


@click.command()
@run_id
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@click.option("--rank", type=click.IntRange(min=0), help="Only lines of this global rank.")
@click.option("--pod", help="Only pods whose name contains this.")
@click.option("--tail", type=click.IntRange(min=0), help="Only the last lines of each pod, this many.")
@as_json
@state_dir
def command(
    run_id: str | None,
    follow: bool,
    rank: int | None,
    pod: str | None,
    tail: int | None,
    as_json: bool,
    state_dir: Path,
) -> None:
    """Print what the pods and ranks of a run wrote.

    \b
    Example:
      argosy logs -f
      argosy logs gpt-x7k2p --rank 1 --tail 50
    """
    folder = find_run(state_dir, run_id)
    if as_json:
        if follow:
            raise InputError(
                "--json with --follow: one object has an end, a followed log has none; leave one of them out"
            )
        emit({"run_id": folder.path.name, "lines": list(_records(folder, rank, pod, tail))})
        return
    printed = False
    for record in _followed(folder, rank, pod, tail) if follow else _records(folder, rank, pod, tail):
        printed = True
        say(f"{record['pod']} | {record['text']}")
    if not printed:
        named = "" if rank is None else f" of rank {rank}"
        click.echo(f"no lines{named} in {folder.path}", err=True)
    next_commands([(folder.command("explain", folder.path.name), "what it means")], err=True)


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


def _logs(folder: RunFolder, pod: str | None) -> list[_Log]:
    """Oldest pod first; a log lies at ``nodes/NODE/pods/POD/log``."""
    found = [path for path in folder.path.glob("nodes/*/pods/*/log") if path.is_file()]
    known = [path for path in found if pod is None or pod in path.parent.name]
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


def _record(log: _Log, line: str, rank: int | None) -> dict[str, object] | None:
    match = RANK.match(line)
    found = int(match[1]) if match else None
    return None if rank is not None and found != rank else {"pod": log.pod, "rank": found, "text": line}


def _records(folder: RunFolder, rank: int | None, pod: str | None, tail: int | None) -> Iterator[dict[str, object]]:
    for log in _logs(folder, pod):
        records = [record for line in log.lines(last=True) if (record := _record(log, line, rank))]
        yield from records if tail is None else records[len(records) - min(tail, len(records)) :]


def _followed(folder: RunFolder, rank: int | None, pod: str | None, tail: int | None) -> Iterator[dict[str, object]]:
    """Lines as they come; ends after the look that follows the end of the run."""
    logs: dict[Path, _Log] = {}
    first = True
    while True:
        done = folder.state().get("phase") in ("Succeeded", "Failed", "Error")
        for log in _logs(folder, pod):
            logs.setdefault(log.path, log)
        for log in logs.values():
            records = [record for line in log.lines(last=done) if (record := _record(log, line, rank))]
            yield from records[-tail:] if first and tail else records
        if done:
            return
        first = False
        time.sleep(POLL_SECONDS)
