"""``argosy chaos``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from signal import Signals

import click

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.injection import FAULTS, Injection
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.story import ending
from argosy.steps.record.wording import count as counted
from argosy.steps.record.wording import duration
from argosy.workflows.cli.chaos.judging import Judged, compared, is_unlike_from_start, judge
from argosy.workflows.cli.chaos.plan import KINDS, SEEN_SECONDS, Calm, draw
from argosy.workflows.cli.live import PlainScreen, Watch
from argosy.workflows.cli.options import as_json, ranks, state_dir
from argosy.workflows.cli.output import emit, next_commands, say, typed
from argosy.workflows.cli.run_folder import ENDED, RunFolder
from argosy.workflows.cli.source import Source, compiled, is_toml, push_code, read_bytes, with_ranks
from argosy.workflows.cli.starting import check_faults, check_gpus
from argosy.workflows.cli.state_dir import check_state_dir
from argosy.workflows.cli.written import write_whole

MOST = 1000
_NOT_OF_CHAOS = ("evaluation", "promotion", "notify", "trigger")
"""Nothing is promoted and nobody is told."""

_UNLIKE = (
    "Losses differ where a script goes on with something else than it had: weights or optimizer state that it does not "
    "load (what was trained is lost then, and the loss jumps at the restored step), the order of its data, or its "
    "random generators (dropout's too). Save them all, with torch.get_rng_state(), and set them again (docs/exact.md)."
)
_UNLIKE_AT_ONCE = (
    "Losses differ before anything was restored: the script draws other numbers at each start. Seed what it draws from "
    "(torch.manual_seed) to see whether a resume changes them; no step is lost by it."
)
_NEVER_RESUMED = (
    "No start went on from a checkpoint, so whether the script reads its own was not seen: let it save earlier, or "
    "write more --kills."
)


class _Interrupted(Exception):
    """By a signal, whose number it holds; the same command goes on."""


@dataclass(frozen=True)
class Chaos:
    """One series of runs: a calm one, then some with faults."""

    source: Source
    state_dir: Path
    seed: int
    quiet: bool

    def record(self, name: str, inject: tuple[str, ...] = (), nodes: int | None = None) -> RunRecord:
        """Of the run ``name`` of this series, which is run now unless it has ended already.

        Raises:
            _Interrupted: by a signal.
        """
        from argosy.workflows.engine.api import RunOptions, run

        folder = RunFolder(self.state_dir / "runs" / self._name(name), self.state_dir)
        if folder.state().get("phase") not in ENDED:
            screen = PlainScreen(sys.stderr if self.quiet else sys.stdout)
            screen.line(f"{folder.name}: {', '.join(inject) or 'without faults'}")
            options = RunOptions(self.state_dir, inject=inject, workflow_name=folder.name, nodes=nodes)
            with Watch(screen) as watch:
                state = run(self.source.yaml, options, lambda _: watch.found(folder))
            if state.interrupted:
                raise _Interrupted(Signals[state.interrupted].value)
        return folder.record()

    def _name(self, run: str) -> str:
        return f"{self.source.run_name}-chaos-{self.source.sha256[:6]}-{self.seed}-{run}"

    @property
    def result(self) -> Path:
        """Where the result is kept; there when the series has ended."""
        return self.state_dir / "chaos" / f"{self._name('result')}.json"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--kills", default=8, show_default=True, metavar="N", help="How many faults, over all runs.")
@click.option(
    "--kind", "kinds", multiple=True, metavar="FAULT", help=f"Only these kinds; repeat. [default: {', '.join(KINDS)}]"
)
@click.option(
    "--seed", type=int, help="What the faults are drawn from. [default: 1, or the next that has not been run]"
)
@ranks
@as_json
@state_dir
def command(
    file: Path,
    kills: int,
    kinds: tuple[str, ...],
    seed: int | None,
    ranks: tuple[int, int] | None,
    as_json: bool,
    state_dir: Path,
) -> int:
    """Break a training on purpose, and say what it lost.

    FILE is a run.toml. It is trained once without faults, then again with real ones: ranks killed, nodes taken away,
    a checkpoint damaged, the supervisor killed, at steps and ranks drawn from the seed. Each must be blamed on the
    right rank or node, and each run must end where the calm one did. Nothing is evaluated or promoted. The same
    command goes on after an interruption. Exit code: 0 all survived, whatever their losses, 1 not.

    \b
    Example:
      argosy chaos run.toml
      argosy chaos run.toml --kills 50 --kind kill --kind node-loss -j 2x1
    """
    _check(kills, kinds, seed)
    source = _described(file, ranks)
    check_faults(source, [Injection(kind, 0, None, 1, 1) for kind in kinds if kind == "exit"])
    check_gpus(source)
    check_state_dir(state_dir, source)
    push_code(source, state_dir)
    chaos = _series(source, state_dir, seed, as_json)
    try:
        calm = chaos.record("calm")
        if calm.phase != "Succeeded":
            why = calm.message or next((ending(each) for each in calm.restarts[-1:]), "")
            say(f"argosy: without any fault the run ended {calm.phase}{f': {why}' if why else ''}", err=True)
            next_commands([(typed("argosy", "explain", calm.workflow), "why")], err=True)
            return 1
        judged, same, unlike = _broken(chaos, calm, kills, kinds or KINDS)
    except _Interrupted as stopped:
        click.echo(f"argosy: interrupted; the same command with --seed {chaos.seed} goes on", err=True)
        return 128 + int(stopped.args[0])
    return _tell(chaos, calm, judged, same, unlike, as_json)


def _check(kills: int, kinds: tuple[str, ...], seed: int | None) -> None:
    if seed is not None and seed < 0:
        raise InputError(f"--seed {seed}: names the runs, too; write 0 or more")
    if not 1 <= kills <= MOST:
        raise InputError(f"--kills {kills}: not a number of faults; write 1 to {MOST}")
    for kind in kinds:
        if kind not in FAULTS:
            raise InputError(f"--kind {kind!r}: unknown fault; there are {', '.join(FAULTS)}")


def _described(file: Path, ranks: tuple[int, int] | None) -> Source:
    from argosy.workflows.spec.load import load_run
    from argosy.workflows.spec.run import TrainingRun

    if not is_toml(file):
        raise InputError(f"FILE {file}: chaos needs the run's description; name the run.toml it was compiled from")
    read_bytes(file)
    run = load_run(file)
    values = (run if ranks is None else with_ranks(run, *ranks)).model_dump(exclude_unset=True)
    return compiled(TrainingRun(**{key: value for key, value in values.items() if key not in _NOT_OF_CHAOS}), file)


def _series(source: Source, state_dir: Path, seed: int | None, quiet: bool) -> Chaos:
    if seed is not None:
        return Chaos(source, state_dir, seed, quiet)
    every: Iterator[Chaos] = (Chaos(source, state_dir, number, quiet) for number in count(1))
    return next(each for each in every if not each.result.exists())


def _broken(chaos: Chaos, calm: RunRecord, kills: int, kinds: tuple[str, ...]) -> tuple[list[Judged], list[str], int]:
    """Each fault judged, of each run how its losses compare, and of how many runs they differ."""
    times = [point.time for each in calm.restarts for point in each.points]
    if not calm.last_step or not times:  # a checkpoint alone tells a step, too
        raise InputError(
            f"{calm.workflow}: no step was read from what the script printed, so no fault can be placed; print one "
            "(see argosy explain-config progress_pattern)"
        )
    assert chaos.source.run is not None
    gang = chaos.source.run.gang
    nnodes = calm.gangs[0].nnodes
    seconds = max(times) - min(times)
    if seconds < SEEN_SECONDS:
        raise InputError(
            f"{calm.workflow}: from its first step to its last {duration(seconds)} passed, and it may take "
            f"{SEEN_SECONDS:g} s until a fault is seen, so that it would not meet the training; let it make more steps"
        )
    shape = Calm(calm.last_step, tuple(each.step for each in calm.checkpoints), seconds)
    judged: list[Judged] = []
    same: list[str] = []
    unlike = 0
    unlike_at_once = again = resumed = False
    for number, faults in enumerate(draw(kinds, kills, shape, nnodes, gang.nproc_per_node, chaos.seed), 1):
        texts = tuple(fault.text for fault in faults)
        record = chaos.record(str(number), texts, nnodes + 1 + len(faults))
        judged += [judge(fault, record, calm.last_step) for fault in faults]
        told, equal, most = compared(record, calm)
        difference = f", the largest difference is {most:.3g}" if equal < told else ""
        unlike += equal < told
        unlike_at_once = unlike_at_once or is_unlike_from_start(record, calm)
        again = again or len(record.restarts) > 1
        resumed = resumed or any(each.restored_digest for each in record.restarts)
        same.append(f"{record.workflow}: {equal} of {told} losses are those of the calm run{difference}")
    why = _UNLIKE_AT_ONCE if unlike_at_once else _UNLIKE
    return judged, [*same, *([why] if unlike else []), *([_NEVER_RESUMED] if again and not resumed else [])], unlike


def _tell(chaos: Chaos, calm: RunRecord, judged: list[Judged], same: list[str], unlike: int, as_json: bool) -> int:
    survived = sum(not each.wrong for each in judged)
    found = {"seed": chaos.seed, "faults": len(judged), "survived": survived, "calm_run": calm.workflow,
             "last_step": calm.last_step, "judged": [each.as_json() for each in judged], "losses": same,
             "runs_with_other_losses": unlike}  # fmt: skip
    chaos.result.parent.mkdir(parents=True, exist_ok=True)
    write_whole(chaos.result, json.dumps(found, indent=2).encode())
    if as_json:
        emit(found)
    else:
        _print(judged, same)
        lost = sum(each.lost_steps for each in judged)
        again = f"{counted(lost, 'step')} done again"
        runs = counted(len({each.run for each in judged}), "run")
        but = f", but the losses of {unlike} of {runs} differ from the calm run's" if unlike else ""
        say(f"\n{survived} of {counted(len(judged), 'fault')} survived{but}, {again}; seed {chaos.seed}")
    bad = list(dict.fromkeys(each.run for each in judged if each.wrong))
    next_commands([(typed("argosy", "explain", name), "what happened to it") for name in bad], err=as_json)
    return int(survived < len(judged))


def _print(judged: list[Judged], same: list[str]) -> None:
    width = max(len(each.fault) for each in judged)
    for name in dict.fromkeys(each.run for each in judged):
        click.echo(f"\n{name}")
        for each in (each for each in judged if each.run == name):
            back = "" if each.back_after is None else f", next step after {duration(each.back_after)}"
            lost = f", {counted(each.lost_steps, 'step')} done again" if each.lost_steps else ""
            say(f"  {'✗' if each.wrong else '✓'} {each.fault:<{width}}  {each.named}{back}{lost}")
            if each.wrong:
                say(f"    {each.wrong}")
    click.echo()
    for text in same:
        say(text)
