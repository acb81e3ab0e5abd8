"""What is compared with what, and why that is fair."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from benchmarks import bare_hera
from benchmarks.environments import metaflow_python
from benchmarks.linting import lint_one, lint_thousand
from benchmarks.paired import BenchError, Comparison, Contender, compare

HERE = Path(__file__).resolve().parent
RUN = HERE.parent / "examples" / "stdlib-gpt" / "run.toml"
ARGOSY = str(Path(sys.executable).parent / "argosy")


def start_up(scratch: Path, rounds: int) -> Comparison:
    """``argosy --help`` beside the bare interpreter. The bar of 0.3 s is absolute; the ratio is for orientation."""
    return compare(
        "argosy --help",
        [
            Contender("argosy --help", [ARGOSY, "--help"], scratch),
            Contender("python -c pass", [sys.executable, "-c", "pass"], scratch),
        ],
        rounds=rounds,
    )


def compile_run(scratch: Path, rounds: int) -> Comparison:
    """``argosy compile`` beside a script that prints the same document, built with Hera; both are whole processes."""
    mine, command, bare = both_ways(scratch)
    return compare(
        "compile stdlib-gpt/run.toml",
        [
            Contender("argosy compile", command, scratch, before=lambda: mine.unlink(missing_ok=True)),
            Contender("bare Hera", bare, scratch),
        ],
        rounds=rounds,
        bar=1.15,
    )


def both_ways(scratch: Path) -> tuple[Path, list[str], list[str]]:
    """What ``argosy compile`` writes, its command, and that of the bare script.

    Raises:
        BenchError: they differ in a field.
    """
    mine, script = scratch / "compiled.yaml", scratch / "bare_workflow.py"
    command, bare = [ARGOSY, "compile", str(RUN), "-o", str(mine)], [sys.executable, str(script)]
    _check(command)
    document = yaml.safe_load(mine.read_text())
    script.write_text(bare_hera.script(document))
    if _by_name(document) != _by_name(yaml.safe_load(_check(bare))):
        raise BenchError("the bare Hera script does not build the document that argosy compiles")
    return mine, command, bare


def local_run(scratch: Path, rounds: int) -> Comparison:
    """Three trivial steps with a number handed on: the local engine beside Metaflow's local run.

    Both start one process per step and keep a record on disk. Metaflow runs without pylint and without telemetry,
    with its local metadata and datastore; each round begins with an empty state folder on both sides.
    """
    state, flows = scratch / "state", scratch / "metaflow"
    quiet = {
        "METAFLOW_USER": "bench",
        "METAFLOW_DEFAULT_METADATA": "local",
        "METAFLOW_DEFAULT_DATASTORE": "local",
        "METAFLOW_DATASTORE_SYSROOT_LOCAL": str(flows),
        "METAFLOW_DEFAULT_MONITOR": "nullSidecarMonitor",
        "METAFLOW_DEFAULT_EVENT_LOGGER": "nullSidecarLogger",
        "METAFLOW_HOME": str(scratch / "metaflow-home"),
    }
    flow = [str(metaflow_python()), str(HERE / "metaflow_three.py"), "--no-pylint", "run"]
    ours = [ARGOSY, "run", str(HERE / "three_steps.yaml"), "--state-dir", str(state)]
    _check(ours)  # that the sum is right is shown once, not timed
    if "number 42" not in "".join(log.read_text() for log in state.rglob("log") if log.is_file()):
        raise BenchError("the three steps did not hand the number on")
    return compare(
        "three trivial steps, run locally",
        [
            Contender("argosy run", ours, scratch, before=_emptied(state)),
            Contender("metaflow run", flow, scratch, env=quiet, before=_emptied(flows)),
        ],
        rounds=rounds,
        bar=0.8,
    )


def checkpoint_cost(scratch: Path, rounds: int) -> Comparison:
    """The example's training with its checkpoints, every 20 steps, beside the same steps with the last one only."""
    example, corpus = HERE.parent / "examples" / "stdlib-gpt", scratch / "corpus"
    _check([sys.executable, str(example / "prepare.py"), "--limit-mb", "1", "--out", corpus.as_uri()])
    train = [sys.executable, str(example / "train.py"), "--data", str(corpus / "train"), "--steps", "240"]

    def contender(name: str, every: int) -> Contender:
        folder = scratch / f"every-{every}"
        command = [*train, "--checkpoints", str(folder), "--checkpoint-every", str(every)]
        return Contender(name, command, scratch, before=_emptied(folder))

    contenders = [contender("a checkpoint every 20 steps", 20), contender("only the last one", 0)]
    return compare("240 steps of the example, one process", contenders, rounds=rounds, bar=1.03)


CONTESTS: dict[str, Callable[[Path, int], Comparison]] = {
    "start-up": start_up,
    "compile": compile_run,
    "local-run": local_run,
    "checkpoint-cost": checkpoint_cost,
    "lint-one": lint_one,
    "lint-thousand": lint_thousand,
}


def _by_name(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its templates as a table: their order says nothing. The default's image may stand in each."""
    spec, templates = document["spec"], {}
    usual = spec["templateDefaults"]["container"]["image"]
    for each in spec["templates"]:
        container = {"container": {"image": usual, **each["container"]}} if "container" in each else {}
        templates[each["name"]] = {**each, **container}
    return {**document, "spec": {**spec, "templates": templates}}


def _emptied(folder: Path) -> Callable[[], None]:
    def before() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()

    return before


def _check(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)} exited {done.returncode}:\n{done.stdout[-800:]}{done.stderr[-800:]}")
    return done.stdout
