"""Launcher plain: ranks that no torchrun starts find what they need to meet, end together and are started again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.layout import run_prefix
from argosy.steps.store import open_store

if TYPE_CHECKING:
    from conftest import Rig

SCRIPT = """
import json, os, pathlib, signal, socket, sys, time
rank, size, told = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), pathlib.Path(sys.argv[1])
assert "torch" not in sys.modules
meet = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:  # the port is the script's own
    server = socket.create_server(meet)
    for _ in range(size - 1):
        server.accept()[0].sendall(b"!")
else:
    deadline = time.monotonic() + 30
    while True:
        try:
            assert socket.create_connection(meet).recv(1) == b"!"
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
(told / f"{os.environ['ARGOSY_RESTART']}-{rank}").write_text(json.dumps(dict(os.environ)))
if os.environ["ARGOSY_RESTART"] == "0":
    if rank == size - 1:
        sys.exit(7)
    signal.pause()
pathlib.Path("out").mkdir(exist_ok=True)
pathlib.Path("out/done").write_text("all of it")
"""


ELSEWHERE = """
import os, pathlib
rank, out = os.environ["RANK"], pathlib.Path("out")
if rank in {WRITERS}:
    out.mkdir(exist_ok=True)
    out.joinpath("model").write_text(f"all of it by {rank}")
"""

MOVES = """
import os, pathlib, time
rank, out = os.environ["RANK"], pathlib.Path("out")
first = os.environ["ARGOSY_RESTART"] == "0"
if rank == "0" and first:
    out.mkdir(exist_ok=True)
    out.joinpath("model").write_text("half of it")
    time.sleep(60)
if rank == "1":
    if first:
        time.sleep(3)
        raise SystemExit(7)
    assert out.joinpath("model").read_text() == "half of it"
    out.joinpath("model").write_text("all of it")
"""


def prepare(rig: Rig, script: str, nproc: int, environ: tuple[str, ...] = ()) -> Path:
    """The folder that the script is told of; ``environ``: NAME=VALUE, what the pods have besides."""
    told = Path(rig.plan["shared"])
    rig.trains(script, told, launcher="plain", nproc_per_node=nproc, include=("*",), before=("env", *environ))
    return told


def ran(rig: Rig, nproc: int, environ: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """What the ranks of the second start found, by rank."""
    told = prepare(rig, SCRIPT, nproc, environ)
    assert rig.run(100) == 0, rig.log()
    (ended,) = (event.fields for event in rig.events("restart_ended"))
    assert (ended["rank"], ended["exit_code"]) == (2 * nproc - 1, 7), rig.log()
    assert rig.processes() == set()
    return [json.loads((told / f"1-{rank}").read_text()) for rank in range(2 * nproc)]


def test_ranks_of_two_nodes_meet_at_a_port_that_nobody_holds(rig: Rig) -> None:
    found = ran(rig, nproc=2)
    names = ("LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")
    assert [[each[name] for name in names] for each in found] == [
        ["0", "4", "2", "0"],
        ["1", "4", "2", "0"],
        ["0", "4", "2", "1"],
        ["1", "4", "2", "1"],
    ]
    assert "TF_CONFIG" not in found[0]


def test_nodes_of_one_rank_are_told_of_each_other_as_tensorflow_reads_it(rig: Rig) -> None:
    clusters = [json.loads(each["TF_CONFIG"]) for each in ran(rig, nproc=1)]
    assert [each["task"] for each in clusters] == [{"type": "worker", "index": index} for index in (0, 1)]
    (workers,) = {tuple(each["cluster"]["worker"]) for each in clusters}
    assert len({*workers}) == 2
    assert all(worker.startswith("127.0.0.1:") for worker in workers)


def test_nodes_of_one_rank_are_told_of_the_workers_as_lightgbm_reads_it(rig: Rig) -> None:
    """In place of what an operator tells, whose port the restart before may hold yet."""
    for each in ran(rig, 1, ("WORKER_ADDRS=r-worker-0", "WORKER_PORT=9991", "KUBERNETES_SERVICE_HOST=10.96.0.1")):
        assert "KUBERNETES_SERVICE_HOST" not in each  # JAX would ask there, without a token
        _, worker = json.loads(each["TF_CONFIG"])["cluster"]["worker"]
        assert f"{each['WORKER_ADDRS']}:{each['WORKER_PORT']}" == worker


def test_a_runs_own_variable_of_such_a_name_stays(rig: Rig) -> None:
    for each in ran(rig, 1, ("WORKER_PORT=1",)):
        assert (each["WORKER_PORT"], "WORKER_ADDRS" in each) == ("1", False)


def saved(rig: Rig) -> str:
    """What the newest checkpoint holds."""
    store = open_store(rig.plan["store"])
    found = CheckpointStore(store, run_prefix("r", rig.args.effective_run_id)).newest()
    assert found is not None
    assert found.final
    (file,) = found.files
    return store.get(f"{run_prefix('r', rig.args.effective_run_id)}/{file.key}").decode()


def test_a_model_that_another_node_saved_than_the_first_is_the_end(rig: Rig) -> None:
    prepare(rig, ELSEWHERE.replace("{WRITERS}", "('1',)"), nproc=1)
    assert rig.run(100) == 0, rig.log()
    assert saved(rig) == "all of it by 1"
    (commit,) = rig.events("checkpoint_committed")
    assert commit.fields["pod"].endswith("-1")


def test_the_first_nodes_model_is_the_end_whoever_else_saved_one(rig: Rig) -> None:
    prepare(rig, ELSEWHERE.replace("{WRITERS}", "('0', '1')"), nproc=1)
    assert rig.run(100) == 0, rig.log()
    assert saved(rig) == "all of it by 0"


def test_models_of_two_nodes_but_the_first_are_named_and_not_chosen_from(rig: Rig) -> None:
    rig.nnodes = 3
    prepare(rig, ELSEWHERE.replace("{WRITERS}", "('1', '2')"), nproc=1)
    assert rig.run(100) == 70, rig.log()
    quote = rig.events("restart_ended")[0].fields["quote"]
    assert quote.endswith("; the first node wrote nothing, and node-1 holds out/model, node-2 holds out/model"), quote


def test_what_was_restored_on_the_first_node_does_not_hide_what_another_saved(rig: Rig) -> None:
    """Rank 0 of the script's own numbering was on node 0, and is on node 1 after the restart."""
    prepare(rig, MOVES, nproc=1)
    assert rig.run(100) == 0, rig.log()
    assert saved(rig) == "all of it"
    told = {event.fields["node"]: event.fields["fetched_bytes"] for event in rig.events("restored")}
    assert told == {"node-0": 0, "node-1": 0}, "the second got it from the first"


@pytest.mark.parametrize("at", ['"uncommitted": "out/model"', '"end": "unchanged"', '"end": "committed"'])
def test_a_supervisor_that_is_killed_while_it_asks_for_the_end_leaves_it_to_the_next(rig: Rig, at: str) -> None:
    prepare(rig, ELSEWHERE.replace("{WRITERS}", "('1',)"), nproc=1)
    rig.run_killed(rf"put \S+/evidence/\S+ .*{at}", 100)
    assert rig.run(100) == 0, rig.log()
    assert saved(rig) == "all of it by 1"
    assert len(rig.events("checkpoint_committed")) == 1
