"""A gang on a cluster: the channel's objects, when somebody tidies up and when a quota is full; what pods end of."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.steps.cluster import api, watching
from argosy.steps.cluster.connecting import connect
from argosy.steps.cluster.kinds import POD
from argosy.steps.contract.objects import GANG_LABEL, WORKFLOW_LABEL
from argosy.steps.gang import kubernetes, reasons
from argosy.steps.gang.channel_objects import Owner
from argosy.steps.gang.host import Identity
from argosy.steps.gang.kubernetes import KubernetesHost
from argosy.steps.gang.manifest import ATTEMPT_LABEL, GangManifest, read_manifest
from argosy.steps.gang.own_pod import NODE_ID, is_evicted
from argosy.steps.gang.pod_states import pod_state
from argosy.steps.supervisor.pod_view import PodView
from argosy.steps.verdict import PodFact, judge
from argosy.steps.verdict.families.kubernetes import REASONS
from tests.cli.api_server import FakeApi, serving

GOLDEN = Path(__file__).parents[1] / "goldens" / "two-nodes-cpu.yaml"
CHANNEL = ["secrets", "services", "networkpolicies", "networkpolicies"]


class Namespace(FakeApi):
    """Says the same of each thing of the channel that is to be made."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__({"metadata": {"name": "w"}})
        self.said, self.made = (status, {"reason": reason, "message": f"{reason}: as this namespace is"}), list[str]()
        self.over = threading.Event()

    def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
        if "watch" in query:
            self.over.wait(30)
            return b""
        return json.dumps({"metadata": {"resourceVersion": "1"}, "items": []}).encode()

    def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.made.append(path.rpartition("/")[2])
        return (201, document) if self.made[-1] not in CHANNEL else self.said


@contextmanager
def hosted(
    namespace: Namespace, manifest: GangManifest, folder: Path, patience: float = api.PATIENCE_SECONDS
) -> Iterator[KubernetesHost]:
    """Who asks a namespace for the gang."""
    with serving(namespace, folder) as kubeconfig:
        host = KubernetesHost(
            connect(kubeconfig=str(kubeconfig), patience=patience), manifest, Owner(name="w", uid="u-1"), "token"
        )
        try:
            yield host
        finally:
            host.close()
            namespace.over.set()


@pytest.fixture
def manifest(tmp_path: Path) -> GangManifest:
    workflow = yaml.safe_load(GOLDEN.read_text())
    train = next(each for each in workflow["spec"]["templates"] if each["name"] == "train")
    (tmp_path / "gang.yaml").write_text(train["inputs"]["artifacts"][0]["raw"]["data"])
    return read_manifest(tmp_path / "gang.yaml")


@pytest.mark.parametrize(
    ("status", "reason", "asked"),
    [
        (409, "AlreadyExists", CHANNEL),  # each once, by a dry run: a quota counts what is to be made
        (403, "Forbidden", CHANNEL),  # by a full quota, also what is there already
        (201, "", [each for each in CHANNEL for _ in range(2)]),  # gone
    ],
)
def test_a_gang_does_not_end_for_what_is_there_already(
    status: int, reason: str, asked: list[str], manifest: GangManifest, tmp_path: Path, capfd: Any
) -> None:
    namespace = Namespace(status, reason)
    with hosted(namespace, manifest, tmp_path) as host:
        assert host.endpoint().token == "token"
        assert namespace.made == asked
        for attempt in (1, 2):
            host.create(manifest, Identity(name=f"w-{attempt}", attempt=attempt, nnodes=2, env={}))
    assert namespace.made == [*asked, "jobsets", *asked, "jobsets"]
    assert ("is still there is not known" in capfd.readouterr().err) is (status == 403)


class Revoked(Namespace):
    """``gone``: the rights to whatever is part of the channel."""

    gone = False

    def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, said = super().write(method, path, document)
        kind = self.made[-1]
        message = f'{kind} is forbidden: User "a" cannot create resource "{kind}" in API group "" in the namespace "b"'
        return (403, {"reason": "Forbidden", "message": message}) if self.gone and kind in CHANNEL else (status, said)


def test_rights_that_were_lost_hold_no_gang_up(
    manifest: GangManifest, tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thing of the channel was asked for again for two minutes, which a SIGTERM had to wait for."""
    monkeypatch.setattr(api, "PATIENCE_SECONDS", 5.0)
    monkeypatch.setattr(kubernetes, "CREATE_SECONDS", 0.5)
    namespace = Revoked(201, "")
    with hosted(namespace, manifest, tmp_path, patience=5.0) as host:
        host.endpoint()
        host.create(manifest, Identity(name="w-1", attempt=1, nnodes=2, env={}))
        namespace.gone, began = True, time.monotonic()
        host.create(manifest, Identity(name="w-2", attempt=2, nnodes=2, env={}))
    assert time.monotonic() - began < 10
    assert namespace.made[-1] == "jobsets"
    assert capfd.readouterr().err.count("is still there is not known") == len(CHANNEL)


class Busy(Namespace):
    """A quota that others use up just now, of which the API server does not know yet what is left."""

    def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        said = super().write(method, path, document)
        if self.made[-1] not in CHANNEL and self.made.count(self.made[-1]) == 1:
            message = 'Operation cannot be fulfilled on resourcequotas "objects": the object has been modified'
            return 409, {"reason": "Conflict", "message": message}
        return said


def test_a_conflict_about_a_quota_is_asked_again(manifest: GangManifest, tmp_path: Path) -> None:
    """It ended the run (78), though the next try goes through."""
    namespace = Busy(409, "AlreadyExists")
    with hosted(namespace, manifest, tmp_path) as host:
        host.create(manifest, Identity(name="w-1", attempt=1, nnodes=2, env={}))
    assert namespace.made == [*CHANNEL, "jobsets", "jobsets"]


class Nodes(FakeApi):
    """``word``: what a kubelet says of the pod u-1."""

    word = ""

    def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
        if path.endswith("/events"):
            assert query["fieldSelector"] == ["involvedObject.uid=u-1"]
            return json.dumps({"items": [{"reason": each} for each in ("Pulled", self.word)]}).encode()
        return super().answer(path, query)


@pytest.mark.parametrize(
    ("node", "conditions", "evicted"),
    [
        ("w-train-1", [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}], True),
        ("w-train-1", [{"type": "DisruptionTarget", "status": "False"}], False),  # a preemption that came to nothing
        ("w-train-1", [], False),  # argo stop, or a Workflow that is deleted
        ("w-train-0", [{"type": "DisruptionTarget", "status": "True"}], False),  # the supervisor before us
    ],
)
def test_a_supervisor_knows_that_its_node_is_drained(
    node: str, conditions: list[dict[str, str]], evicted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGO_NODE_ID", "w-train-1")
    metadata = {"name": "w-train", "uid": "u-1", "annotations": {NODE_ID: node}}
    api = Nodes({"metadata": {"name": "w"}}, [{"metadata": metadata, "status": {"conditions": conditions}}])
    with serving(api, tmp_path) as kubeconfig:
        assert is_evicted(connect(kubeconfig=str(kubeconfig)), "w") is evicted
        assert api.lists == ["workflows.argoproj.io/workflow=w,argosy.dev/role=supervisor"]
        api.refused["/api/v1/namespaces/research/pods"] = "forbidden"
        assert not is_evicted(connect(kubeconfig=str(kubeconfig)), "w")
        # One that has too little memory or disk leaves it a second, and no condition before the end; so does one that
        # needs the room itself.
        api.refused = {}
        for api.word in ("Evicted", "Preempting"):
            assert is_evicted(connect(kubeconfig=str(kubeconfig)), "w") is (node == "w-train-1")


class Queue(Namespace):
    """A JobSet whose queue took its nodes back: suspended, and its pods are told to stop."""

    def __init__(self, suspend: bool) -> None:
        super().__init__(201, "")
        labels = {GANG_LABEL: "w-1", ATTEMPT_LABEL: "1", WORKFLOW_LABEL: "w"}
        told = {"deletionTimestamp": "2026-11-27T10:00:30Z", "deletionGracePeriodSeconds": 30}
        node = {"template": {"spec": {"parallelism": 2}}, "replicas": 1, "name": "node"}
        self.here = {
            "jobsets": {"metadata": {"name": "w-1", "uid": "1", "labels": labels}, "spec": {"suspend": suspend}},
            "pods": {
                "metadata": {"name": "w-1-node-0-0", "uid": "2", "labels": labels, **told},
                "status": {"phase": "Running"},
            },
        }
        self.here["jobsets"]["spec"] |= {"replicatedJobs": [node]}

    def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
        found = self.here.get(path.rpartition("/")[2])
        if "watch" in query or found is None:
            return super().answer(path, query)
        return json.dumps({"metadata": {"resourceVersion": "1"}, "items": [found]}).encode()


@pytest.mark.parametrize(("suspend", "cause"), [(True, "preempted_evicted"), (False, None)])
def test_a_gang_whose_nodes_its_queue_takes_back_is_preempted(
    suspend: bool, cause: str | None, manifest: GangManifest, tmp_path: Path
) -> None:
    """Its pods only tell of a SIGTERM, which is charged to the run."""
    queue = Queue(suspend)
    with hosted(queue, manifest, tmp_path) as host:
        (pod,) = host.pods("w-1")
    assert REASONS.get(pod.reason) == cause


class Succession(Namespace):
    """Each JobSet and Job has a pod at once, and both are gone as soon as it is deleted; a watch ends with the next
    change.
    """

    def __init__(self) -> None:
        super().__init__(201, "")
        self.here, self.version, self.changed = dict[str, dict[str, Any]](), 1, threading.Condition()

    def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
        with self.changed:
            if "watch" in query:
                while query["resourceVersion"] == [str(self.version)] and not self.over.is_set():
                    self.changed.wait(0.1)
                return json.dumps({"type": "ERROR", "object": {"code": 410, "reason": "Expired"}}).encode()
            kind = path.rpartition("/")[2]
            pods = {
                name: {
                    "metadata": {"labels": {GANG_LABEL: name}},
                    "spec": {"nodeName": "n-1"},
                    "status": {"phase": "Running"},
                }
                for name in self.here
            }
            jobsets = {name: each for name, each in self.here.items() if each["kind"] == "JobSet"}
            found = jobsets if kind == "jobsets" else pods if kind == "pods" else {}
            items = [{**each, "metadata": {**each["metadata"], "name": name, "uid": f"{kind}-{name}"}}
                     for name, each in found.items()]  # fmt: skip
            return json.dumps({"metadata": {"resourceVersion": str(self.version)}, "items": items}).encode()

    def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self.changed:
            if method == "DELETE":
                self.here.pop(path.rpartition("/")[2], None)
            elif path.endswith(("/jobsets", "/jobs")):
                self.here[document["metadata"]["name"]] = document
            self.version += 1
            self.changed.notify_all()
        return super().write(method, path, document)


def test_of_gangs_that_are_long_gone_nothing_is_kept(
    manifest: GangManifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pod that was ever seen was, until the supervisor of a large gang had no memory left."""
    monkeypatch.setattr(watching, "_LONGEST_PAUSE", 0.05)
    namespace = Succession()
    with hosted(namespace, manifest, tmp_path) as host:
        for attempt in range(1, 5):
            name = f"w-{attempt}"
            host.create(manifest, Identity(name=name, attempt=attempt, nnodes=2, env={}))
            until = time.monotonic() + 30
            while [state.phase for state in host.pods(name)] != ["Running"]:
                assert time.monotonic() < until
                time.sleep(0.05)
            while host.probe(manifest, Identity(name=name, attempt=attempt, nnodes=2, env={}), 1).running < 1:
                assert time.monotonic() < until
                time.sleep(0.05)
            host.end_probe(name)
            assert host.delete(name, 0.0) == ()
            assert host.pods(name) == []
            assert len(host.documents_of(name)) == 1, "its evidence"
        assert {each["metadata"]["name"].removesuffix("-probe") for each, _ in host._pods.seen()} <= {"w-3", "w-4"}
        assert {each["metadata"]["name"] for each, _ in host._workloads.seen()} <= {"w-3", "w-4"}


class Proxied(Namespace):
    """What its watches say, one after the other; then they go on."""

    def __init__(self, *said: list[dict[str, Any]]) -> None:
        super().__init__(201, "")
        self.watches = ["\n".join(map(json.dumps, each)).encode() for each in said]

    def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
        return self.watches.pop(0) if "watch" in query and self.watches else super().answer(path, query)


# A line that is no event ended the thread: no pod was seen any more.
STRANGE: list[list[dict[str, Any]]] = [[{"message": "no healthy upstream"}], []]
# Each is broken off after a while: the pauses grew to ten seconds, though they were served until then.
BROKEN: list[list[dict[str, Any]]] = [
    [
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}},
        {"type": "ERROR", "object": {"code": 410}},
    ]
    for version in range(10, 18)
]


@pytest.mark.parametrize("said", [STRANGE, BROKEN])
def test_a_watch_goes_on_whatever_a_proxy_says(
    said: list[list[dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace, pauses = Proxied(*said), list[float]()
    with serving(namespace, tmp_path) as kubeconfig:
        watched = watching.Watched(connect(kubeconfig=str(kubeconfig)), POD, "a=b", lambda: None)
        monkeypatch.setattr(watched._stopped, "wait", pauses.append)
        watched.start()
        until = time.monotonic() + 30
        while namespace.watches:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert watched._thread.is_alive()
        watched.stop()
        namespace.over.set()
    assert pauses
    assert max(pauses) <= 2.0


def test_watches_that_end_at_once_are_not_asked_for_as_fast_as_they_end(tmp_path: Path) -> None:
    """A proxy that lets none through was asked two hundred times a second."""
    namespace, said = Proxied(*[[]] * 100), list[float]()
    with serving(namespace, tmp_path) as kubeconfig:
        watched = watching.Watched(connect(kubeconfig=str(kubeconfig)), POD, "a=b", lambda: said.append(0))
        watched.start()
        until = time.monotonic() + 30
        while len(said) < 3 and namespace.watches:
            assert time.monotonic() < until
            time.sleep(0.02)
        watched.stop()
        namespace.over.set()
    assert len(namespace.watches) > 90


@pytest.mark.parametrize("suspend", [False, True])
def test_a_gang_whose_controller_is_away_says_that_nobody_makes_its_pods(
    suspend: bool, manifest: GangManifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was queued, without a reason, for as long as its controller was away."""
    monkeypatch.setattr(reasons, "UNMADE_SECONDS", 0.0)
    queue = Queue(suspend)
    with serving(queue, tmp_path) as kubeconfig:
        asked = reasons.Reasons(connect(kubeconfig=str(kubeconfig)), manifest.runtime)
        said = asked.why(queue.here["jobsets"], [])
        again = reasons.Reasons(connect(kubeconfig=str(kubeconfig)), manifest.runtime)
        assert again.why(queue.here["jobsets"], [queue.here["pods"] | {"spec": {"nodeName": "n"}}]) == ""
    assert said == ("" if suspend else "no pod of JobSet w-1 was made: does the controller of JobSets run?")


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        ([[], []], "no scheduler says a word of pod w-0: does volcano run, and is the gang's queue there?"),
        ([[("Schedulable", "node-b, perhaps")], [("Unschedulable", "3 Insufficient cpu")]], "3 Insufficient cpu"),
        ([[("Schedulable", "node-b, perhaps")]] * 2, "node-b, perhaps"),
    ],
)
def test_pods_of_which_no_scheduler_says_a_word_say_so(
    conditions: list[list[tuple[str, str]]], said: str, manifest: GangManifest, tmp_path: Path, monkeypatch: Any
) -> None:
    """Of a queue that is not there Volcano tells nobody; where it has a node for a pod it names another each second."""
    monkeypatch.setattr(reasons, "UNMADE_SECONDS", 0.0)
    pods = [
        {
            "metadata": {"name": f"w-{number}"},
            "spec": {"schedulerName": "volcano"},
            "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
                                      for reason, message in each]},
        }
        for number, each in enumerate(conditions)
    ]  # fmt: skip
    queue = Queue(suspend=False)
    with serving(queue, tmp_path) as kubeconfig:
        asked = reasons.Reasons(connect(kubeconfig=str(kubeconfig)), manifest.runtime)
        assert asked.why(queue.here["jobsets"], pods) == said


class Strange(Queue):
    """A pod that failed, whose log is ``said``."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(suspend=False)
        self.said_last = said.encode()
        ended = {"state": {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": "2026-11-27T10:00:00Z"}}}
        pod = self.here["pods"] | {"status": {"phase": "Failed", "containerStatuses": [{"name": "main", **ended}]}}
        pod["metadata"] = {"name": "w-1-node-0-0", "uid": "2", "labels": pod["metadata"]["labels"]}
        self.here["pods"] = pod | {"spec": {"nodeName": "n", "containers": [{"name": "main"}]}}

    def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
        return self.said_last if path.endswith("/pods/w-1-node-0-0/log") else super().answer(path, query)


@pytest.mark.parametrize(
    ("code", "said", "cause", "quoted"),
    [
        (1, "/usr/bin/python: No module named argosy\n", "import_error", "No module named argosy"),
        (1, "hello\nfrom another entrypoint\n", "unknown", "and reported nothing; its log: from another entrypoint"),
        (2, "python: can't open file '/a.py'\n", "launcher_usage", "can't open file '/a.py'"),
        (1, "", "unknown", "and reported nothing"),
    ],
)
def test_an_image_in_which_argosy_never_begins_says_so_by_its_log(
    code: int, said: str, cause: str, quoted: str, manifest: GangManifest, tmp_path: Path
) -> None:
    """Three gangs were made of it, and what it had written was told nowhere."""
    cluster = Strange(code, said)
    with hosted(cluster, manifest, tmp_path) as host:
        (state,) = host.pods("w-1")
    view = PodView(state, 0.0)
    trouble = view.unexplained()
    assert (view.is_unexplained, trouble.cause) == (True, cause)
    assert quoted in trouble.quote


@pytest.mark.parametrize(("code", "cause"), [(76, "preempted_evicted"), (143, "preempted_evicted"), (1, "unknown")])
def test_a_pod_that_is_deleted_before_it_checked_in_is_nobodys_failure(code: int, cause: str) -> None:
    """A restart was charged for one that somebody deleted while it began."""
    ended = {"name": "main", "state": {"terminated": {"exitCode": code, "reason": "Error"}}}
    metadata = {"name": "p", "deletionTimestamp": "2026-11-27T16:00:30Z", "deletionGracePeriodSeconds": 30}
    state = pod_state({"metadata": metadata, "status": {"phase": "Failed", "containerStatuses": [ended]}})
    assert REASONS.get(state.reason, PodView(state, 0.0).unexplained().cause) == cause


def test_of_pods_that_are_deleted_the_first_to_go_is_named() -> None:
    """A person deleted node 1's pod; its Job swept the other's, which ended a second before it, and was named."""

    def fact(name: str, asked: int, ended: int) -> PodFact:
        said = {"exitCode": 76, "reason": "Error", "finishedAt": f"2026-11-28T11:00:{ended}Z"}
        status = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": said}}]}
        metadata = {"name": name, "deletionTimestamp": f"2026-11-28T11:01:{asked}Z", "deletionGracePeriodSeconds": 60}
        return PodView(pod_state({"metadata": metadata, "status": status}), 0.0).fact(None)

    verdict = judge([], [], [fact("swept", 45, 44), fact("deleted", 41, 45)])
    assert (verdict.cause, verdict.pod) == ("preempted_evicted", "deleted")


def test_a_container_that_its_restarted_node_forgot_was_taken_away() -> None:
    """As containerd tells of it to a kubelet that begins anew: no failure of the run's."""
    ended = {"name": "main", "state": {"terminated": {"exitCode": 255, "reason": "Unknown"}}}
    pod = {"metadata": {"name": "p"}, "status": {"phase": "Failed", "containerStatuses": [ended]}}
    assert REASONS[pod_state(pod).reason] == "preempted_evicted"


def test_a_gang_that_was_admitted_no_longer_waits_for_its_queue(manifest: GangManifest, tmp_path: Path) -> None:
    """Of one that was being placed it was said for 20 s more that its queue is inactive."""
    waits = {"type": "QuotaReserved", "status": "False", "message": "ClusterQueue q is inactive"}

    class Queued(FakeApi):
        def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
            found = [{"status": {"conditions": [waits]}}] if path.endswith("/workloads") else []
            return json.dumps({"items": found}).encode()

    workload = {"metadata": {"name": "w-1", "uid": "u"}, "spec": {"suspend": True, "replicatedJobs": []}}
    with serving(Queued({"metadata": {"name": "w"}}), tmp_path) as kubeconfig:
        asked = reasons.Reasons(connect(kubeconfig=str(kubeconfig)), manifest.runtime)
        assert asked.why(workload, []) == "ClusterQueue q is inactive"
        workload["spec"]["suspend"] = False
        assert asked.why(workload, []) == ""
