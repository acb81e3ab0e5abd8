"""The process host: identity, placement, disks, adoption, and the end of everything."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from argosy.steps.contract import env
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.objects import KUEUE_QUEUE
from argosy.steps.gang.host import Identity, PodState
from argosy.steps.gang.manifest import (
    GangManifest,
    check_manifest,
    excluded_nodes,
    main_container,
    pod_spec,
    read_manifest,
    with_identity,
)
from argosy.steps.gang.processes import ProcessHost
from argosy.workflows.gang.documents import gang_documents
from argosy.workflows.spec.placement import RUNTIMES
from argosy.workflows.spec.run import TrainingRun

if TYPE_CHECKING:
    from conftest import Rig


def document(nnodes: int = 2, script: str = "exit 0", **container: Any) -> dict[str, Any]:
    main = {"name": "main", "command": ["sh", "-c", script], **container}
    volumes = [
        {"name": "work", "emptyDir": {}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "argosy"}},
        {"name": "secret", "secret": {"secretName": "x"}},
    ]
    job = {
        "parallelism": nnodes,
        "completions": nnodes,
        "template": {"spec": {"containers": [main], "volumes": volumes}},
    }
    return {"kind": "JobSet", "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": job}}]}}


def job(nnodes: int = 2, script: str = "exit 0") -> list[dict[str, Any]]:
    """The other runtime, with all that can stand beside it, in no order."""
    spec = document(nnodes, script)["spec"]["replicatedJobs"][0]["template"]["spec"] | {"completionMode": "Indexed"}
    return [
        {"kind": "Service", "spec": {"clusterIP": "None", "selector": {"x": "y"}}},
        {"kind": "Job", "metadata": {"labels": {KUEUE_QUEUE: "q"}}, "spec": spec},
        {"kind": "PodGroup", "spec": {"disruptionMode": {"all": {}}}},
    ]


def gang(*documents: dict[str, Any]) -> GangManifest:
    return check_manifest(documents, "x")


def identity(name: str = "g-a1", nnodes: int = 2, excluded: tuple[str, ...] = ()) -> Identity:
    return Identity(name=name, attempt=int(name[-1]), nnodes=nnodes, env={"ARGOSY_GANG_NAME": name}, excluded=excluded)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[ProcessHost]:
    made = make_host(tmp_path)
    yield made
    for gang in made.gangs():
        made.delete(gang.name, 0.1)
    for pod in made._known.values():
        pod.poll()  # pods that another host deleted are still our children


def make_host(folder: Path, token: str = "") -> ProcessHost:
    environ = {"PATH": os.environ["PATH"], env.POD_TOKEN: token or f"test-{folder.name}-{folder.parent.name}/train"}
    return ProcessHost(folder / "runs/w", 3, environ, {})


def ended(host: ProcessHost, name: str, seconds: float = 20) -> list[PodState]:
    deadline = time.monotonic() + seconds
    while not all(state.has_ended for state in host.pods(name)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return host.pods(name)


def test_identity_is_all_that_changes() -> None:
    manifest = gang(document(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]))
    (made,) = with_identity(manifest, name="g-a7", attempt=7, nnodes=3, env={"B": "3"}, excluded=("node-1",))
    assert made["metadata"]["name"] == "g-a7"
    assert main_container(made)["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}]
    assert excluded_nodes(made) == {"node-1"}
    assert "metadata" not in manifest.workload, "the manifest itself was changed"
    made["metadata"] = {}
    (again,) = with_identity(gang(made), name="h", attempt=8, nnodes=3, env={}, excluded=("node-2",))
    assert excluded_nodes(again) == {"node-1", "node-2"}


def test_identity_is_set_on_every_object_of_a_gang() -> None:
    manifest = gang(*job())
    assert (manifest.runtime.name, manifest.placement, manifest.nnodes) == ("job", "native", 2)
    assert gang(job()[1]).placement == "kueue"
    made = with_identity(
        manifest, name="g-a1", attempt=1, nnodes=3, env={}, excluded=(), labels={"for-argo-logs": "wf"}
    )
    group, service, workload = made
    own = {"argosy.dev/gang": "g-a1", "argosy.dev/attempt": "1"}
    assert [each["kind"] for each in made] == ["PodGroup", "Service", "Job"]
    assert [each["metadata"]["name"] for each in made] == ["g-a1"] * 3
    assert [each["metadata"]["labels"] for each in made] == [own, own, {KUEUE_QUEUE: "q", **own}]
    assert group["spec"] == {"disruptionMode": {"all": {}}, "schedulingPolicy": {"gang": {"minCount": 3}}}
    assert service["spec"] == {"clusterIP": "None", "selector": {"argosy.dev/gang": "g-a1"}}
    assert (workload["spec"]["parallelism"], workload["spec"]["completions"]) == (3, 3)
    assert workload["spec"]["template"]["metadata"]["labels"] == {"for-argo-logs": "wf", **own}
    pod = pod_spec(workload)
    assert (pod["subdomain"], pod["schedulingGroup"]) == ("g-a1", {"podGroupName": "g-a1"})
    assert manifest == gang(*job()), "the manifest itself was changed"


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "not YAML"), ("[]", "kind is 'list'"), ("kind: Pod", "kind is 'Pod'"), ("", "kind is nothing"),
     ("kind: JobSet", "missing"), ("kind: Job", "missing"),
     (yaml.safe_dump({**document(), "spec": {"replicatedJobs": []}}), "missing"),
     (yaml.safe_dump_all([document(), document()]), "kind is 'JobSet', 'JobSet'; one"),
     (yaml.safe_dump_all([*job(), {"kind": "Secret"}]), "kind is 'Secret'"),
     (yaml.safe_dump_all([document(), {"kind": "Service"}]), "a Service of its own"),
     (yaml.safe_dump({**job()[1], "spec": document()["spec"]["replicatedJobs"][0]["template"]["spec"]}), "no index")],
)  # fmt: skip
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "gang.yaml").write_text(text)
    with pytest.raises(InputError, match=said):
        read_manifest(tmp_path / "gang.yaml")


@pytest.mark.parametrize(("runtime", "placements"), [pair for pair in RUNTIMES.items() if pair[1]])
def test_a_gang_of_each_runtime_runs_as_it_was_compiled(
    host: ProcessHost, runtime: str, placements: tuple[str, ...]
) -> None:
    shape = {"nnodes": "2:3", "runtime": runtime, "placement": placements[0]}
    run = TrainingRun(name="llm", script="train.py", gang=shape)
    documents = gang_documents(run)
    for each in containers(documents):
        each.update(command=["sh", "-c", "echo node $JOB_COMPLETION_INDEX of $ARGOSY_GANG_NAME"], args=[])
    host.create(gang(*documents), identity())
    states = ended(host, "g-a1")
    said = [Path(state.log).read_text() for state in states]
    assert [(state.index, state.exit_code) for state in states] == [(0, 0), (1, 0)], said
    assert said == ["node 0 of g-a1\n", "node 1 of g-a1\n"]
    assert len({state.name for state in states}) == 2


def containers(root: Any) -> Iterator[dict[str, Any]]:
    if isinstance(root, dict):
        yield from root.get("containers", [])
        root = list(root.values())
    for each in root if isinstance(root, list) else ():
        yield from containers(each)


@pytest.mark.parametrize("documents", [[document()], job()], ids=["jobset", "job"])
def test_pods_are_on_nodes_of_their_own_and_never_on_excluded_ones(
    host: ProcessHost, documents: list[dict[str, Any]]
) -> None:
    host.create(gang(*documents), identity(excluded=("node-0",)))
    assert [(state.index, state.node, state.exit_code) for state in ended(host, "g-a1")] == [
        (0, "node-1", 0),
        (1, "node-2", 0),
    ]
    with pytest.raises(StepError) as raised:
        host.create(gang(*documents), identity("g-a2", excluded=("node-0", "node-1")))
    assert (raised.value.cause, raised.value.code) == (Cause.UNSCHEDULABLE, 78)
    assert host.pods("g-a2") == []


def test_a_node_sees_its_own_disk_and_the_claim_is_everybodys(host: ProcessHost, tmp_path: Path) -> None:
    code = (
        "from argosy.steps.paths import resolve; import os, sys\n"
        "mine = os.environ['JOB_COMPLETION_INDEX']\n"
        "for folder in ('/argosy/work', '/var/x', '/vol'):\n"
        "    resolve(folder).mkdir(parents=True, exist_ok=True)\n"
        "    (resolve(folder) / mine).write_text(mine)\n"
        "import tempfile; tempfile.mkstemp()\n"
    )
    mounts = [{"name": "work", "mountPath": "/argosy/work"}, {"name": "claim", "mountPath": "/vol"}]
    container = {"command": [sys.executable, "-c", code], "volumeMounts": mounts}
    host.create(gang(document(**container)), identity())
    assert [state.exit_code for state in ended(host, "g-a1")] == [0, 0]
    assert {path.name for path in (tmp_path / "volumes/argosy").iterdir()} == {"0", "1"}
    for index in "01":
        pod = tmp_path / f"runs/w/nodes/node-{index}/pods/g-a1-node-0-{index}"
        assert [path.name for path in (pod / "volumes/work").iterdir()] == [index]
        assert [path.name for path in (pod / "root/var/x").iterdir()] == [index]
        assert len(list((pod / "root/tmp").iterdir())) == 1
    host.delete("g-a1", 1)


def test_a_folder_of_the_node_outlives_gangs_and_runs_and_is_no_other_nodes(host: ProcessHost, tmp_path: Path) -> None:
    code = (
        "from argosy.steps.paths import resolve; import os\n"
        "for folder in ('/cache', '/big'):\n"
        "    (resolve(folder) / os.environ['ARGOSY_GANG_NAME']).write_text('')\n"
    )
    mounts = [{"name": "cache", "mountPath": "/cache"}, {"name": "big", "mountPath": "/big"}]
    made = document(command=[sys.executable, "-c", code], volumeMounts=mounts)
    volumes = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["volumes"]
    volumes += [{"name": "cache", "hostPath": {"path": "/mnt/nvme"}}, {"name": "big", "ephemeral": {}}]
    for name in ("g-a1", "g-a2"):
        host.create(gang(made), identity(name))
        assert [state.exit_code for state in ended(host, name)] == [0, 0]
        host.delete(name, 1)
    other = ProcessHost(tmp_path / "runs/other", 1, {"PATH": os.environ["PATH"]}, {})
    other.create(gang(made), identity("g-a3", nnodes=1))
    assert [state.exit_code for state in ended(other, "g-a3")] == [0]
    other.delete("g-a3", 1)
    names = {
        node: {path.name for path in (tmp_path / f"disks/{node}/mnt/nvme").iterdir()} for node in ("node-0", "node-1")
    }
    assert names == {"node-0": {"g-a1", "g-a2", "g-a3"}, "node-1": {"g-a1", "g-a2"}}
    for index in "01":
        pod = tmp_path / f"runs/w/nodes/node-{index}/pods/g-a2-node-0-{index}"
        assert [path.name for path in (pod / "volumes/big").iterdir()] == ["g-a2"]


@pytest.mark.parametrize(
    ("container", "said"),
    [
        ({"volumeMounts": [{"name": "secret", "mountPath": "/s"}]}, "secret"),
        ({"volumeMounts": [{"name": "none", "mountPath": "/s"}]}, "no such volume"),
        ({"env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}]}, "secretKeyRef"),
        ({"envFrom": [{"configMapRef": {"name": "x"}}]}, "configMapRef"),
        ({"command": []}, "no command"),
    ],
)
def test_what_this_machine_has_not_is_refused_before_a_pod_starts(
    host: ProcessHost, container: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        host.create(gang(document(**container)), identity())
    assert host.gangs() == []


def test_another_host_adopts_what_the_first_started(host: ProcessHost, tmp_path: Path) -> None:
    host.create(gang(document(script="sleep 30")), identity())
    other = make_host(tmp_path, token="test-another-supervisor/train")
    other.create(gang(document(script="sleep 30")), identity())
    assert [state.phase for state in other.pods("g-a1")] == ["Running", "Running"]
    assert other.endpoint() == host.endpoint()
    other.delete("g-a1", 5)
    assert [(gang.name, gang.deleted) for gang in host.gangs()] == [("g-a1", True)]
    assert host.pods("g-a1") == []
    pods = list((tmp_path / "runs/w").glob("nodes/*/pods/*"))
    assert pods
    assert not [left for pod in pods for left in (pod / "root" / "tmp").glob("*")]


def test_a_port_that_was_taken_meanwhile_is_given_up_unless_pods_know_it(host: ProcessHost, tmp_path: Path) -> None:
    before = host.endpoint()
    host.create(gang(document(script="sleep 30")), identity())
    with socket.create_server((before.host, before.port)):
        assert make_host(tmp_path).endpoint() == before
        host.delete("g-a1", 5)
        after = make_host(tmp_path).endpoint()
    assert after.port != before.port
    assert make_host(tmp_path).endpoint() == after


def test_a_lost_node_takes_no_pod_again(host: ProcessHost) -> None:
    host.create(gang(document(script="sleep 30")), identity())
    host.lose("node-0")
    state = host.pods("g-a1")[0]
    assert (state.phase, state.reason) == ("Failed", "NodeLost")  # what it ended by is known if it was first to go
    assert host.room(()) == 2
    host.delete("g-a1", 1)
    host.create(gang(document()), identity("g-a2"))
    assert [state.node for state in ended(host, "g-a2")] == ["node-1", "node-2"]


def test_an_evicted_pod_has_its_grace_and_not_more(host: ProcessHost) -> None:
    stubborn = "trap '' TERM; while :; do sleep 0.05; done"
    host.create(gang(document(script=stubborn)), identity())
    time.sleep(0.2)
    host.evict("node-1", 0.5)
    assert host.pods("g-a1")[1].phase == "Running"
    while not (state := host.pods("g-a1")[1]).has_ended:
        time.sleep(0.02)
    assert (state.signal, state.reason) == (9, "DisruptionTarget")
    host.delete("g-a1", 0.1)


def test_the_gang_ends_with_the_engine_and_the_next_run_charges_nothing(rig: Rig) -> None:
    rig.plan["steps"] = 10_000
    rig.options = {"max_restarts": 0, "max_preemptions": 0}
    read, write = os.pipe()
    os.set_inheritable(read, True)
    rig.lifeline = read
    process = rig.start()
    os.close(read)
    rig.until(lambda: rig.steps(1))
    process.kill()
    process.wait()
    seen = len(rig.steps(1))
    rig.until(lambda: len(rig.steps(1)) > max(seen, 6))
    os.close(write)
    rig.until(lambda: not rig.processes())
    rig.plan["steps"] = max(rig.steps(1)) + 20
    rig.lifeline = None
    assert rig.run() == 0, rig.log()
    assert rig.events("restart_ended") == []
    assert len(rig.events("gang_created")) == 2
    assert min(a["resume_step"] for a in rig.assignments() if a["attempt"] == 2) > 0


def test_the_module_prints_its_usage(tmp_path: Path) -> None:
    found = subprocess.run([sys.executable, "-m", "argosy.steps.train"], capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "--store-uri" in found.stderr
    assert "Traceback" not in found.stderr


def test_the_token_is_nobody_elses_to_read(host: ProcessHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, to: (modes.append(self.stat().st_mode), replace(self, to))[1])
    before = os.umask(0)
    try:
        token = host.endpoint().token
    finally:
        os.umask(before)
    assert [mode & 0o077 for mode in modes] == [0], "readable while it was written"
    for path in tmp_path.rglob("*"):
        if path.is_file() and token.encode() in path.read_bytes():
            assert path.stat().st_mode & 0o077 == 0, path
