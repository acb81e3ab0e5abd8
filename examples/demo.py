"""``make demo``: the whole chain on this machine, checked as it goes.

A two-node run gets its data, trains, loses a rank to SIGKILL, resumes, is evaluated, passes the gate and is
promoted; the same event again is refused; a bad run is refused by the gate and the pointer does not move.
Everything below is an ordinary command that is printed before it runs.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "stdlib-gpt"
ARGOSY = str(Path(sys.executable).parent / "argosy")
KILL_STEP = 35


class DemoError(Exception):
    """The demo did not show what it promises."""


def say(text: str) -> None:
    """A headline."""
    print(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


def run(*command: str) -> int:
    """Run a command in the example's folder, its output shown; the exit code."""
    shown = [Path(word).name if word in (ARGOSY, sys.executable) else word for word in command]
    print(f"$ {shlex.join(shown)}", flush=True)
    return subprocess.run(command, cwd=FOLDER, check=False).returncode


def status() -> dict[str, Any]:
    """``argosy status --json`` of the latest run."""
    done = subprocess.run([ARGOSY, "status", "--json"], cwd=FOLDER, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def check(holds: bool, what: str) -> None:
    """Print a check.

    Raises:
        DemoError: it does not hold.
    """
    print(f"   {'ok' if holds else 'FAILED'}: {what}", flush=True)
    if not holds:
        raise DemoError(what)


def good_run() -> dict[str, Any]:
    """Event -> two nodes -> rank 1 killed -> resumed -> promoted."""
    say(f"A dataset arrives: its event starts a run on two nodes. At step {KILL_STEP} rank 1 is killed with signal 9")
    code = run(ARGOSY, "run", "run.toml", "--event", "event.json", "--inject", f"kill:rank=1@step={KILL_STEP}")
    told = status()
    attempts = told["attempts"]
    killed = [attempt for attempt in attempts if attempt["signal"] == 9]
    check(code == 0, f"exit code 0 (it was {code})")
    check(len(attempts) >= 2, f"{len(attempts)} attempts")
    check(bool(killed), "one of them ended by signal 9")
    restored = attempts[-1]["restored_step"]
    check(0 < restored < KILL_STEP, f"resumed from step {restored}, after the start and before step {KILL_STEP}")
    same = told["promoted_digest"] == told["evaluated_digest"] != ""
    check(same, f"promoted what was evaluated: {told['promoted_digest'][:12]}")
    return told


def duplicate_event() -> None:
    """The same event again starts nothing."""
    say("The same event arrives again")
    code = run(ARGOSY, "run", "run.toml", "--event", "event.json")
    admission = status()["admission"]
    check(code == 0 and admission["decision"] == "duplicate", f"refused: {admission['reason']}")


def bad_run(promoted: str) -> None:
    """A run that learned nothing does not pass the gate."""
    say("A bad run: trained for a few steps only")
    code = run(ARGOSY, "run", "bad.toml")
    told = status()
    check(code == 3, f"exit code 3: finished, but refused by the gate (it was {code})")
    check(told["gate"]["decision"] == "refuse", f"refused: {told['gate']['reason']}")
    check(not told["promoted_digest"], "nothing was promoted by it")
    check(pointer() == promoted, f"the pointer still names {promoted[:12]}")


def pointer() -> str:
    """Digest of the pointer's last entry, read from the embedded store itself."""
    history = sorted(FOLDER.glob(".argosy/volumes/argosy/store/*/pointers/*/*.json"))
    return str(json.loads(history[-1].read_text())["digest"]) if history else ""


def main() -> int:
    """Run the demo; 0 if everything it promises was seen."""
    began = time.monotonic()
    shutil.rmtree(FOLDER / ".argosy", ignore_errors=True)
    try:
        say("Real text: the source files of this Python's standard library, sharded into the embedded store")
        check(run(sys.executable, "prepare.py") == 0, "dataset prepared")
        told = good_run()
        duplicate_event()
        bad_run(told["promoted_digest"])
    except DemoError as error:
        print(f"\nargosy: the demo failed: {error}", file=sys.stderr)
        return 1
    say(f"Done in {time.monotonic() - began:.0f} s. {metrics(told)}")
    print(f"Report: {told['report']}\nNext:   cd {FOLDER}; argosy status; argosy explain; argosy logs")
    return 0


def metrics(told: dict[str, Any]) -> str:
    """The promoted metric in words."""
    metric = told["metric"]
    return f"Promoted: {metric['name']} {metric['value']:.3f}" if isinstance(metric, dict) else f"Promoted: {metric}"


if __name__ == "__main__":
    sys.exit(main())
