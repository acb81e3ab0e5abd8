"""A pod that speaks the control channel and trains nothing: real processes, signals and commits, no torch.

Run as ``node_client.py PLAN.json``. The rank is a child process, so that a signal ends it as it would a real one.
Keys of the plan: steps, whole (a gang of so many nodes ends so many steps after its start, a smaller one never),
step_seconds, jitter (of heavy tails), own (index: so many times slower; then each tells its own work), commit_every,
final (bool), store, prefix, away (indexes that never check in), last (indexes that check in when others have their
ranks), says_sigterm (bool: SIGTERM to the pod ends its rank, and that is told), faults: list of {"index", "step",
"how": exception|kill|segv|exit CODE|hang|damage, "times"}; shared: a folder.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from argosy.steps.contract.errors import StepError

PLAN = json.loads(Path(sys.argv[1]).read_text())
SHARED = Path(PLAN["shared"])
POD, NODE = os.environ["ARGOSY_POD_NAME"], os.environ["ARGOSY_NODE_NAME"]
POD_INDEX = INDEX = int(os.environ["JOB_COMPLETION_INDEX"])
"""INDEX is the rank once there is one: a spare takes another's."""
TERMINATED = False


WAITING = False


def terminated(*_: object) -> None:
    global TERMINATED
    TERMINATED = True
    if WAITING:
        sys.exit(76)


def post(path: str, record: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        os.environ["ARGOSY_CHANNEL_URL"] + path,
        json.dumps(record).encode(),
        {"Authorization": f"Bearer {os.environ['ARGOSY_CHANNEL_TOKEN']}"},
    )
    # As launch, but not for 30 s: a pod may be asking before the supervisor has seen that it is there.
    until = time.monotonic() + 2.0
    while True:
        try:
            with urllib.request.urlopen(request, timeout=40) as answer:
                return dict(json.loads(answer.read()))
        except urllib.error.HTTPError as error:
            if error.code == 410 and time.monotonic() > until:
                sys.exit(73)
        except (OSError, http.client.HTTPException, ValueError):
            pass  # the supervisor is away, perhaps since the middle of its answer: training goes on
        if TERMINATED:
            sys.exit(76)
        time.sleep(0.05)


def strike(fault: dict[str, Any]) -> bool:
    """Count a fault of the plan; whether it still happens."""
    for number in range(fault.get("times", 1)):
        try:
            (SHARED / f"{fault['index']}-{fault['how'].replace(' ', '-')}-{fault['step']}-{number}").touch(
                exist_ok=False
            )
            return True
        except FileExistsError:
            continue
    return False


def rank(assignment: dict[str, Any], pipe: int) -> None:
    """The child: step, commit, fail as planned."""
    step, end = assignment["resume_step"], PLAN["steps"]
    if "whole" in PLAN:
        end = step + end if assignment["nnodes"] >= PLAN["whole"] else sys.maxsize
    commits = writer(assignment, end) if INDEX == 0 else None
    try:
        restore(assignment)
        if PLAN.get("raise_at_start"):
            raise ZeroDivisionError("before the first step")
        while step < end:
            step += 1
            began = time.monotonic()
            slower = PLAN.get("own", {}).get(str(INDEX), 1.0)
            time.sleep(slower * PLAN["step_seconds"] * (1 + PLAN.get("jitter", 0.0) * random.paretovariate(3.0) / 10))
            own = {"own": time.monotonic() - began, "time": time.time()} if "own" in PLAN else {}
            all_reduce(assignment, step)
            os.write(pipe, (json.dumps({"step": step, "rank": INDEX, "loss": 1.0 / step, **own}) + "\n").encode())
            with (SHARED / f"steps-{INDEX}").open("a") as log:
                log.write(f"{assignment['attempt']} {assignment['restart']} {step}\n")
            if commits and (step % PLAN["commit_every"] == 0 or step == end):
                commits(step)
            injected(assignment.get("fault"), step, pipe)
            for fault in PLAN.get("faults", []):
                if fault["index"] == INDEX and fault["step"] == step and strike(fault):
                    fail(fault["how"])
    except StepError as error:
        os.write(pipe, (json.dumps({"said": f"argosy: {error}"}) + "\n").encode())
        os._exit(int(error.code))
    except Exception as error:
        os.write(pipe, (json.dumps({"said": f"{type(error).__name__}: {error}"}) + "\n").encode())
        os._exit(1)
    os._exit(0)


def all_reduce(assignment: dict[str, Any], step: int) -> None:
    """Wait for every peer to reach the step, for ever, as a collective does."""
    folder = SHARED / f"reduce-{assignment['attempt']}-{assignment['restart']}-{step}"
    folder.mkdir(exist_ok=True)
    (folder / str(INDEX)).touch()
    while len(list(folder.iterdir())) < assignment["nnodes"]:
        time.sleep(0.005)


def injected(fault: dict[str, Any] | None, step: int, pipe: int) -> None:
    if fault and fault["rank"] == INDEX and step >= fault["step"]:
        event = {"kind": "injected", "fault": fault["fault"], "rank": INDEX, "step": fault["step"]}
        os.write(pipe, (json.dumps({"event": event}) + "\n").encode())
        number = {"kill": signal.SIGKILL, "segv": signal.SIGSEGV, "hang": signal.SIGSTOP}.get(fault["fault"])
        if number is None:
            os._exit(fault["code"])
        os.kill(os.getpid(), number)


def fail(how: str) -> None:
    if how == "exception":
        raise ZeroDivisionError("the plan wants it")
    if how.startswith("say "):
        raise FloatingPointError(how.removeprefix("say "))
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "damage":
        from argosy.steps.checkpoint.store import CheckpointStore
        from argosy.steps.store import open_store

        store = CheckpointStore(open_store(PLAN["store"]), PLAN["prefix"])
        file = store.commits()[-1].files[0]
        store.store.put(f"{store.prefix}/{file.key}", b"x" * file.size)
    if how == "hang":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how.startswith("exit "):
        os._exit(int(how.split()[1]))


def restore(assignment: dict[str, Any]) -> None:
    if assignment["resume_digest"]:
        from argosy.steps.checkpoint.store import CheckpointStore
        from argosy.steps.store import open_store

        store = CheckpointStore(open_store(PLAN["store"]), PLAN["prefix"])
        store.verify(store.by_digest(assignment["resume_digest"]))


def writer(assignment: dict[str, Any], end: int) -> Any:
    from argosy.steps.checkpoint.log import Claim
    from argosy.steps.checkpoint.store import CheckpointStore
    from argosy.steps.launch.folder_part import store_part
    from argosy.steps.launch.whole_files import facts
    from argosy.steps.store import open_store

    store = CheckpointStore(open_store(PLAN["store"]), PLAN["prefix"])
    claim = Claim(assignment["generation"], assignment["log_seq"])
    folder = SHARED / "out" / str(assignment["generation"])
    folder.mkdir(parents=True, exist_ok=True)

    def commit(step: int) -> None:
        (folder / "ckpt").write_bytes(str(step).encode() * 50)
        os.utime(folder / "ckpt", (time.time() - 10, time.time() - 10))
        name, final = store.new_save(claim, step), PLAN["final"] and step == end
        part = store_part(store.part(name, 0), folder, facts(folder, ["ckpt"]))
        store.commit(claim, name, step, [part], kind="files", world_size=1, final=final)

    return commit


def run(assignment: dict[str, Any]) -> dict[str, Any]:
    """One restart; the orders that ended it."""
    base = {"pod": POD, "node": NODE, "node_rank": assignment["node_rank"], "restart": assignment["restart"]}
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        rank(assignment, write)
    os.close(write)
    os.set_blocking(read, False)
    rest, said, step, phase, endings, events = b"", "", 0, "running", [], []
    while True:
        asked = TERMINATED and PLAN.get("says_sigterm", False)
        if asked and phase == "running":
            os.kill(child, signal.SIGTERM)
        pid, status = os.waitpid(child, 0 if asked else os.WNOHANG) if phase == "running" else (0, 0)
        with contextlib.suppress(BlockingIOError):
            rest += os.read(read, 1 << 16)
        *lines, rest = rest.split(b"\n")
        records = [json.loads(line) for line in lines]
        said = next((record["said"] for record in records if "said" in record), said)
        events += [record["event"] for record in records if "event" in record]
        steps = [record for record in records if "step" in record]
        step = steps[-1]["step"] if steps else step
        if pid:
            code = os.waitstatus_to_exitcode(status)
            phase = "finished" if code == 0 else "failed"
            tail = ["Traceback (most recent call last):", said] if said else []
            endings = [{"rank": INDEX, "time": time.time(), "exit_code": code if code >= 0 else None,
                        "signal": -code if code < 0 else None, "stopped": False, "tail": tail,
                        "last_step": step}]  # fmt: skip
        orders = post("/v1/report", {**base, "phase": phase, "steps": steps, "events": events, "endings": endings})
        events = []
        if orders["command"] != "continue" or TERMINATED:
            if phase == "running":
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            return orders if orders["command"] != "continue" else {"command": "exit", "exit_code": 76}
        time.sleep(0.03)


def began() -> bool:
    """Whether another pod of our gang has its rank."""
    told = SHARED / "assignments"
    return told.exists() and os.environ["ARGOSY_GANG_NAME"] in told.read_text()


def main() -> int:
    global WAITING, INDEX
    signal.signal(signal.SIGTERM, terminated)
    last = -1
    while (INDEX in PLAN.get("away", []) or NODE in PLAN.get("away_nodes", [])) and not TERMINATED:
        time.sleep(0.05)
    while POD_INDEX in PLAN.get("last", []) and not (TERMINATED or began()):
        time.sleep(0.05)
    while not TERMINATED:
        WAITING = True
        answer = post(
            "/v1/check-in",
            {"pod": POD, "node": NODE, "pod_index": POD_INDEX, "address": "127.0.0.1", "free_port": 20000 + POD_INDEX,
             "nproc": 1, "last_restart": last},
        )  # fmt: skip
        WAITING = False
        if answer.get("wait"):
            continue
        if "command" not in answer:
            last, INDEX = answer["restart"], answer["node_rank"]
            with (SHARED / "assignments").open("a") as log:
                log.write(json.dumps({**answer, "pod": POD, "node": NODE}) + "\n")
            answer = run(answer)
        if answer["command"] == "exit":
            return int(answer["exit_code"])
    return 76


if __name__ == "__main__":
    sys.exit(main())
