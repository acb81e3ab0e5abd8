"""What a cluster says of a run before it is submitted, and how a person is told: ``argosy doctor`` and ``install``."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.cluster.connecting import connect
from argosy.steps.contract.errors import StepError
from argosy.workflows.cluster.submission import NO_REHEARSAL
from tests.cli.api_server import FakeApi, serving
from tests.s3 import S3Server

RUN = """
name = "r"
script = "train.py"
secrets = ["s3"]
[storage]
uri = "{uri}"
[gang.pod]
labels = {{ team = "nlp" }}
"""
GROUPS = {"argoproj.io": "v1alpha1", "jobset.x-k8s.io": "v1alpha2"}
KINDS = [{"name": each} for each in ("workflows", "workflowtemplates", "workflowtaskresults")]
NODE = {
    "metadata": {"name": "a", "labels": {}},
    "spec": {},
    "status": {
        "allocatable": {"cpu": "64", "memory": "1Ti", "pods": "100"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
POD = 'pods "argosy-doctor" is forbidden: '


STARTS = {
    f"/apis/argoproj.io/v1alpha1/namespaces/research/{kind}/r-trigger": {"metadata": {"name": "r-trigger"}}
    for kind in ("cronworkflows", "workflowtemplates", "workfloweventbindings")
}


@dataclass
class Cluster(FakeApi):
    """Lets everybody do all but what is ``denied`` (verb, resource); ``refusals``: a kind, and what admission says."""

    workflow: dict[str, Any] = field(default_factory=lambda: {"metadata": {"name": "w"}})
    refusals: dict[str, str] = field(default_factory=dict)
    denied: tuple[tuple[str, str], ...] = ()
    objects: dict[str, Any] = field(default_factory=dict)
    seen: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
        served = [{"name": name, "versions": [{"version": version}]} for name, version in GROUPS.items()]
        known = {
            "/version": {"gitVersion": "v1.37.1"},
            "/apis": {"groups": served},
            "/apis/argoproj.io/v1alpha1": {"resources": KINDS},
            "/api/v1/namespaces/research": {"metadata": {"name": "research"}},
            "/api/v1/nodes": {"items": [NODE]},
            **self.objects,
        }
        if path in known:
            return json.dumps(known[path]).encode()
        if path.endswith("-trigger") and "/argoproj.io/" in path:
            return None
        named = {"metadata": {"creationTimestamp": "2026-11-22T16:00:00Z"}}
        one = any(f"/{kind}/" in path for kind in ("serviceaccounts", "secrets"))
        return json.dumps(named if one else {"items": []}).encode()

    def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.seen.append(document)
        if path.endswith("accessreviews"):
            asked = document["spec"]["resourceAttributes"]
            return 201, {"status": {"allowed": (asked["verb"], asked["resource"]) not in self.denied}}
        said = self.refusals.get(document["kind"], "")
        status, reason = (404, "NotFound") if "not found" in said else (403, "Forbidden")
        status, reason = (409, "AlreadyExists") if "exists" in said else (status, reason)
        return (status, {"reason": reason, "message": said}) if said else (201, document)


@pytest.fixture
def run(tmp_path: Path, monkeypatch) -> Path:
    """Nobody's keys: a store that is not a test's own is asked nothing."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "PROFILE", "ENDPOINT_URL"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    for name in ("CONFIG_FILE", "SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(f"AWS_{name}", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    (tmp_path / "train.py").write_text("import torch.distributed as dist\n")
    path = tmp_path / "run.toml"
    path.write_text(RUN.format(uri="s3://b/store"))
    return path


def examined(argosy, run: Path, cluster: Cluster) -> tuple[int, dict[str, dict[str, str]]]:
    with serving(cluster, run.parent) as kubeconfig:
        code, out, err = argosy("doctor", str(run), "--kubeconfig", str(kubeconfig), "--json")
    assert err == ""
    return code, {each["what"]: each for each in json.loads(out)["checks"]}


@pytest.mark.parametrize(
    ("said", "state", "remedy"),
    [
        (f"{POD}failed quota: small: must specify limits.cpu for: main", "missing", "a LimitRange with defaults"),
        (f"{POD}exceeded quota: small, requested: pods=1, used: pods=2", "missing", "a larger ResourceQuota"),
        (f"{POD}[minimum cpu usage per Container is 200m, but request is 100m]", "missing", "LimitRange allows"),
        (f"{POD}cpu max limit to request ratio per Container is 4, but provided ratio is 5", "missing", "LimitRange"),
        (f'{POD}violates PodSecurity "restricted:latest": hostPath', "missing", "leave out what the message names"),
        (
            'admission webhook "w" denied the request: cannot exceed resource limits',
            "missing",
            "correct what the message",
        ),
        (f"{POD}ValidatingAdmissionPolicy 'x' denied request: no", "missing", "correct what the message names"),
        (
            'pods is forbidden: User "me" cannot create resource "pods" in API group "" in the namespace "research"',
            "unknown",
            "who may create it sees",
        ),
    ],
)
def test_what_admission_refuses_is_missing_and_only_a_missing_right_is_unknown(
    said: str, state: str, remedy: str, argosy, run: Path
) -> None:
    """All of them are a 403. Of a quota and a LimitRange it was said that one who may create pods sees more."""
    code, checks = examined(argosy, run, Cluster(refusals={"Pod": said}))
    for what in ("Pod of the gang, dry run", "Pod of a step, dry run"):
        assert checks[what]["state"] == state
        assert remedy in checks[what]["remedy"]
        assert state == "unknown" or said in checks[what]["detail"]
    assert code == (1 if state == "missing" else 0)


def test_a_kind_that_is_missing_from_a_group_that_is_there_is_missing(argosy, run: Path) -> None:
    """Who has Kubeflow's TFJob alone was told ok, and a PyTorchJob of theirs ended at once."""
    code, checks = examined(argosy, run, Cluster(refusals={"JobSet": "the server could not find it: not found"}))
    found = checks["JobSet, dry run"]
    assert (code, found["state"]) == (1, "missing")
    assert found["detail"] == "the cluster serves jobset.x-k8s.io/v1alpha2, but no JobSet of it"


def test_the_pods_that_are_shown_have_their_labels_and_the_steps_image(argosy, run: Path) -> None:
    cluster = Cluster()
    code, checks = examined(argosy, run, cluster)
    assert code == 0, checks
    gang, step = (each for each in cluster.seen if each.get("kind") == "Pod")
    assert gang["metadata"]["labels"]["team"] == "nlp"
    (container,) = step["spec"]["containers"]
    assert (container["name"], container["image"]) == ("main", "argosy/step:0.1.0")
    assert step["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_of_a_workflow_of_ones_own_the_step_is_ours_as_its_template_says(argosy, run: Path, tmp_path: Path) -> None:
    theirs = {"name": "prepare", "container": {"image": "p:1", "command": ["python", "-c", "1"]}}
    ours = {"image": "argosy/step:0.1.0", "command": ["python", "-m", "argosy.steps.train"]}
    later = {"name": "T", "valueFrom": {"secretKeyRef": {"name": "channel-{{workflow.uid}}", "key": "token"}}}
    user = {"runAsUser": 1000}
    spec = {
        "entrypoint": "main",
        "templates": [theirs, {"name": "main", "container": {**ours, "env": [later]}, "securityContext": user}],
    }
    path = tmp_path / "flow.yaml"
    document = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"}, "spec": spec}
    path.write_text(json.dumps(document))
    cluster = Cluster()
    assert examined(argosy, path, cluster)[0] == 0
    (step,) = (each for each in cluster.seen if each.get("kind") == "Pod")
    assert step["spec"]["securityContext"] == user
    assert step["spec"]["containers"] == [{**ours, "env": [], "name": "main"}]
    assert step["metadata"]["labels"]["workflows.argoproj.io/completed"] == "false"


def test_a_claim_that_waits_for_a_class_that_nobody_has_is_missing(argosy, run: Path) -> None:
    run.write_text(RUN.format(uri="file:///mnt/argosy/store"))
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "fast"}
    claim = {
        "/api/v1/namespaces/research/persistentvolumeclaims/argosy": {"spec": spec, "status": {"phase": "Pending"}}
    }
    code, checks = examined(argosy, run, Cluster(objects=claim))
    assert (code, checks["claim argosy"]["state"]) == (1, "missing")
    assert "there is no storage class fast" in checks["claim argosy"]["detail"]
    classes = {"/apis/storage.k8s.io/v1/storageclasses": {"items": [{"metadata": {"name": "fast"}}]}}
    code, checks = examined(argosy, run, Cluster(objects={**claim, **classes}))
    assert (code, checks["claim argosy"]["state"]) == (0, "unknown")


def test_a_claim_without_a_class_that_no_volume_fits_is_missing(argosy, run: Path) -> None:
    """The API server would have written the default class into it."""
    run.write_text(RUN.format(uri="file:///mnt/argosy/store"))
    found = {"spec": {"accessModes": ["ReadWriteMany"]}, "status": {"phase": "Pending"}}
    path = "/api/v1/namespaces/research/persistentvolumeclaims/argosy"
    code, checks = examined(argosy, run, Cluster(objects={path: found}))
    assert (code, checks["claim argosy"]["state"]) == (1, "missing")
    assert "it names no storage class" in checks["claim argosy"]["detail"]


@pytest.mark.parametrize(
    ("hard", "said"),
    [
        ({"requests.cpu": "2"}, "requests.cpu: the gang and its supervisor want 2.1 of 2"),
        ({"cpu": "2"}, "cpu: the gang and its supervisor want 2.1 of 2"),
        ({"limits.memory": "4Gi"}, "limits.memory: the gang and its supervisor want 5.0 GiB of 4.0 GiB"),
        ({"pods": "2"}, "pods: the gang and its supervisor want 3 of 2"),
        ({"pods": "3", "requests.cpu": "2100m", "limits.memory": "5Gi", "requests.nvidia.com/gpu": "0"}, ""),
    ],
)
def test_a_quota_that_never_holds_the_gang_is_missing(hard: dict[str, str], said: str, argosy, run: Path) -> None:
    """One pod of it was accepted, and the run waited for the others without an end."""
    run.write_text(RUN.format(uri="s3://b/store").replace("[gang.pod]", "[gang]\nnnodes = 2\n[gang.pod]"))
    quota = {"metadata": {"name": "small"}, "spec": {"hard": hard}}
    scoped = {"metadata": {"name": "of-others"}, "spec": {"hard": {"pods": "0"}, "scopes": ["BestEffort"]}}
    path = "/api/v1/namespaces/research/resourcequotas"
    _, checks = examined(argosy, run, Cluster(objects={path: {"items": [quota, scoped]}}))
    assert ("quota small" in checks) == bool(said)
    assert said in checks.get("quota small", {"detail": ""})["detail"]
    assert "quota of-others" not in checks


def test_nodes_that_are_cordoned_are_not_said_to_be_too_small(argosy, run: Path) -> None:
    nodes = [{**NODE, "metadata": {"name": name}, "spec": {"unschedulable": name != "c"}} for name in "abc"]
    run.write_text(RUN.format(uri="s3://b/store").replace("[gang.pod]", "[gang]\nnnodes = 2\n[gang.pod]"))
    _, checks = examined(argosy, run, Cluster(objects={"/api/v1/nodes": {"items": nodes}}))
    assert "1 of 3 could take one, 2 being cordoned or not Ready" in checks["capacity"]["detail"]


@pytest.mark.parametrize(
    ("placement", "said"),
    [
        ("none", ""),
        ('kueue"\nqueue = "q', "pods: the gang and its supervisor want 5 of 3"),
        ("native", "pods: the gang and its supervisor want 5 of 3"),
    ],
)
def test_an_elastic_gang_that_starts_with_fewer_nodes_wants_no_quota_for_all(
    placement: str, said: str, argosy, run: Path
) -> None:
    gang = f'[gang]\nnnodes = "2:4"\nplacement = "{placement}"\n[gang.pod]'
    run.write_text(RUN.format(uri="s3://b/store").replace("[gang.pod]", gang))
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "3"}}}
    path = "/api/v1/namespaces/research/resourcequotas"
    queue = {"metadata": {"name": "q", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"clusterQueue": "all"}}
    queues = {"/apis/kueue.x-k8s.io/v1beta2/namespaces/research/localqueues/q": queue}
    _, checks = examined(argosy, run, Cluster(objects={path: {"items": [quota]}, **queues}))
    assert said in checks.get("quota small", {"detail": ""})["detail"]
    assert ("quota small" in checks) == bool(said)


@pytest.mark.parametrize(
    ("spec", "asks"),
    [
        ({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}, True),
        ({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": 53}]}]}, True),
        ({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}, False),
        ({"podSelector": {}, "policyTypes": ["Ingress"]}, False),
        ({"podSelector": {"matchLabels": {"app": "x"}}, "policyTypes": ["Egress"]}, False),
    ],
)
def test_a_policy_that_takes_every_way_out_is_asked_about(spec: dict[str, Any], asks: bool, argosy, run: Path) -> None:
    policies = {"items": [{"metadata": {"name": "deny"}, "spec": spec}]}
    path = "/apis/networking.k8s.io/v1/namespaces/research/networkpolicies"
    code, checks = examined(argosy, run, Cluster(objects={path: policies}))
    assert code == 0
    assert ("network policy deny" in checks) == asks


def test_a_webhook_that_is_down_is_named_and_not_the_api_server(argosy, run: Path, monkeypatch) -> None:
    monkeypatch.setattr("argosy.workflows.cluster.place.PATIENCE_SECONDS", 0.1)
    message = 'Internal error occurred: failed calling webhook "pods.policy": failed to call webhook: refused'

    class Unhooked(Cluster):
        def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            down = {"reason": "InternalError", "message": message}
            return (500, down) if document["kind"] == "Pod" else super().write(method, path, document)

    _, checks = examined(argosy, run, Unhooked())
    found = checks["Pod of the gang, dry run"]
    assert found["state"] == "missing"
    assert "a webhook of the cluster did not answer" in found["detail"]
    assert "kubectl get validatingwebhookconfigurations" in found["remedy"]


@pytest.mark.parametrize(
    ("bucket", "keys", "state", "said"),
    [
        ("lake", True, "ok", "answers"),
        ("pond", True, "missing", "the bucket does not exist"),
        ("lake", False, "unknown", "no AWS credentials for s3://lake/store"),
    ],
)
def test_the_store_is_asked_with_the_keys_of_who_asks(
    bucket: str, keys: bool, state: str, said: str, argosy, run: Path, monkeypatch
) -> None:
    """A bucket that nobody had made was found by the first pod."""
    with S3Server(("lake",)) as server:
        for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}.items() if keys else ():
            monkeypatch.setenv(f"AWS_{name}", value)
        for name, value in {"AWS_ALLOW_HTTP": "true", "AWS_ENDPOINT_URL": server.endpoint}.items():
            monkeypatch.setenv(name, value)
        run.write_text(RUN.format(uri=f"s3://{bucket}/store"))
        code, checks = examined(argosy, run, Cluster())
    found = checks[f"store s3://{bucket}/store"]
    assert (found["state"], code) == (state, int(state == "missing"))
    assert said in found["detail"]


@pytest.mark.parametrize(
    ("queue", "state", "said"),
    [
        ({"status": {"state": "Open"}}, "ok", "there since"),
        ({"status": {"state": "Closed"}}, "missing", "Closed: it starts nothing"),
        ({"spec": {"capability": {"cpu": "2"}}}, "ok", "there since"),
        ({"spec": {"capability": {"cpu": "1"}}}, "missing", "never enough: cpu: the gang wants 2 of 1"),
        (None, "missing", "not there"),
    ],
)
def test_a_queue_of_volcano_is_there_open_and_large_enough(
    queue: dict[str, Any] | None, state: str, said: str, argosy, run: Path
) -> None:
    """Volcano does not say to pods what their queue is like: they waited without an end."""
    gang = '[gang]\nnnodes = "2:3"\nplacement = "volcano"\n[gang.pod]'
    run.write_text(RUN.format(uri="s3://b/store").replace("[gang.pod]", gang))

    class Volcano(Cluster):
        def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
            if path != "/apis/scheduling.volcano.sh/v1beta1/queues/default":
                return super().answer(path, query)
            named = {"metadata": {"creationTimestamp": "2026-11-22T16:00:00Z"}, **(queue or {})}
            return json.dumps(named).encode() if queue else None

    _, checks = examined(argosy, run, Volcano())
    found = checks["Volcano queue default"]
    assert (found["state"], said in found["detail"]) == (state, True), found


def test_a_secret_to_pull_with_that_is_not_there_is_missing(argosy, run: Path) -> None:
    run.write_text(RUN.format(uri="s3://b/store") + 'image_pull_secrets = ["regcred"]\n')

    class Without(Cluster):
        def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
            return None if path.endswith("/secrets/regcred") else super().answer(path, query)

    code, checks = examined(argosy, run, Without())
    assert (code, checks["pull secret regcred"]["state"]) == (1, "missing")
    assert "docker-registry regcred -n research" in checks["pull secret regcred"]["remedy"]


def test_a_pod_that_meets_a_webhook_that_is_down_names_the_cluster_and_may_be_tried_again(tmp_path: Path) -> None:
    """It was `unknown`, which gives up after the third."""
    said = 'Internal error occurred: failed calling webhook "mjobset.kb.io": failed to call webhook: refused'

    class Unhooked(Cluster):
        def write(self, *_: Any) -> tuple[int, dict[str, Any]]:
            return 500, {"reason": "InternalError", "message": said}

    with (
        serving(Unhooked(), tmp_path) as kubeconfig,
        pytest.raises(StepError, match="a webhook of the cluster") as told,
    ):
        connect(kubeconfig=str(kubeconfig), patience=0.1).create({"apiVersion": "v1", "kind": "Pod", "metadata": {}})
    assert (told.value.cause, told.value.code, said in told.value.quote) == ("config_or_rbac", 75, True)


def test_whoever_waits_for_a_refused_creation_is_told_the_reason_once(tmp_path: Path, monkeypatch, capsys) -> None:
    """The train step asked for two minutes before it said a word."""
    monkeypatch.setattr("argosy.steps.cluster.api.TELLING_SECONDS", 0.1)
    said, asked = "resource quota evaluation timed out", list[str]()

    class Busy(Cluster):
        def write(self, *_: Any) -> tuple[int, dict[str, Any]]:
            asked.append(said)
            return (500, {"reason": "InternalError", "message": said}) if len(asked) < 8 else (201, {})

    with serving(Busy(), tmp_path) as kubeconfig:
        api = connect(kubeconfig=str(kubeconfig), patience=90)
        # And again by each call of who follows a run: two lines every ten seconds for as long as it was away.
        for patience in (0.5, 0.5, 90):
            with suppress(StepError):
                api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {}}, patience=patience)
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("argosy: the Kubernetes API does not answer; asked again for 0 s: POST /api/v1/")
    assert told.endswith(f"500 {said}")


def test_what_one_call_waits_for_is_told_once_while_others_are_answered(tmp_path: Path, monkeypatch, capsys) -> None:
    """Each answer that another thread got had it told again."""
    monkeypatch.setattr("argosy.steps.cluster.api.TELLING_SECONDS", 0.1)
    asked = list[str]()

    class Half(Cluster):
        def write(self, *_: Any) -> tuple[int, dict[str, Any]]:
            asked.append("pod")
            api.read("/version")
            return (503, {"message": "later"}) if len(asked) < 5 else (201, {})

    with serving(Half(), tmp_path) as kubeconfig:
        api = connect(kubeconfig=str(kubeconfig), patience=90)
        api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {}})
    assert capsys.readouterr().err.count("asked again for") == 1


def test_the_kinds_that_start_a_run_by_itself_are_looked_for(argosy, run: Path) -> None:
    own = RUN.format(uri="s3://b/store") + '[dataset]\nuri = "s3://b/c"\n[trigger]\n'
    run.write_text(own + '[trigger.event_source.sqs]\nqueue = "q"\nregion = "eu-west-1"\n')
    code, checks = examined(argosy, run, Cluster())
    assert code == 1
    assert checks["Argo Events"]["detail"] == "its CRDs eventbus, eventsources, sensors are not there"
    assert checks["trigger"]["detail"] == "its CRDs cronworkflows, workfloweventbindings are not there"
    run.write_text(own)
    kinds = [*KINDS, {"name": "cronworkflows"}, {"name": "workfloweventbindings"}]
    served = {"/apis/argoproj.io/v1alpha1": {"resources": kinds}}
    code, checks = examined(argosy, run, Cluster(objects={**served, **STARTS}))
    assert (code, checks["trigger"]["state"]) == (0, "ok")
    assert checks["service account argosy-trigger, rights"]["state"] == "ok"
    code, checks = examined(argosy, run, Cluster(objects=served))
    lacking = "WorkflowTemplate r-trigger, CronWorkflow r-trigger, WorkflowEventBinding r-trigger"
    assert (code, checks["trigger, installed"]["detail"]) == (1, f"{lacking}: not there")


def test_what_an_earlier_trigger_still_starts_is_told(argosy, run: Path) -> None:
    """Once [trigger] is gone from the description, nothing said that its CronWorkflow goes on."""
    code, checks = examined(argosy, run, Cluster(objects=STARTS))
    assert (code, checks["trigger, left over"]["state"]) == (0, "unknown")
    kinds = "cronworkflows,workfloweventbindings,workflowtemplates"
    assert checks["trigger, left over"]["remedy"].endswith(f"kubectl delete -n research {kinds} r-trigger")


def test_who_decides_about_new_data_has_to_be_allowed_to(argosy, run: Path) -> None:
    """Its account was looked at by nobody before the first event."""
    run.write_text(RUN.format(uri="s3://b/store") + '[dataset]\nuri = "s3://b/c"\n[trigger]\n')
    code, checks = examined(argosy, run, Cluster(denied=(("list", "workfloweventbindings"),)))
    found = checks["service account argosy-trigger, rights"]
    assert (code, found["state"], found["detail"]) == (1, "missing", "may not list workfloweventbindings")
    assert found["remedy"] == "argosy install -n research --trigger RUN.toml --apply"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "never has enough: cpu: the gang wants 1 of 0.75"),
        ({"cohortName": "lends"}, ""),
    ],
)
def test_a_cluster_queue_that_never_has_enough_is_missing(more: dict[str, Any], said: str, argosy, run: Path) -> None:
    kueue = '[gang]\nplacement="kueue"\nqueue="q"\n[gang.pod]'
    run.write_text(RUN.format(uri="s3://b/store").replace("[gang.pod]", kueue))
    quotas = [{"resources": [{"name": "cpu", "nominalQuota": each}]} for each in ("500m", "250m")]
    created = {"creationTimestamp": "2026-11-22T16:00:00Z"}
    objects = {
        "/apis/kueue.x-k8s.io/v1beta2/namespaces/research/localqueues/q": {
            "metadata": created,
            "spec": {"clusterQueue": "all"},
        },
        "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/all": {"spec": {"resourceGroups": [{"flavors": quotas}], **more}},
    }
    _, checks = examined(argosy, run, Cluster(objects=objects))
    assert checks["queue q"]["state"] == ("missing" if said else "ok")
    assert said in checks["queue q"]["detail"]


@pytest.mark.parametrize(("active", "state"), [("True", "ok"), ("False", "missing")])
def test_a_queue_whose_cluster_queue_starts_nothing_is_missing(argosy, run: Path, active: str, state: str) -> None:
    run.write_text(
        RUN.format(uri="s3://b/store").replace("[gang.pod]", '[gang]\nplacement="kueue"\nqueue="q"\n[gang.pod]')
    )
    conditions = [{"type": "Active", "status": active, "reason": "ClusterQueueDoesNotExist", "message": "Can't submit"}]
    found = {
        "metadata": {"creationTimestamp": "2026-11-22T16:00:00Z"},
        "spec": {"clusterQueue": "nowhere"},
        "status": {"conditions": conditions},
    }
    path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/research/localqueues/q"
    _, checks = examined(argosy, run, Cluster(objects={path: found}))
    assert checks["queue q"]["state"] == state
    assert ("nowhere" in checks["queue q"]["detail"]) == (state == "missing")
    found["spec"]["stopPolicy"] = "HoldAndDrain"
    _, checks = examined(argosy, run, Cluster(objects={path: found}))
    assert ("somebody stopped it" in checks["queue q"]["detail"]) == (state == "missing")


def test_rights_that_submit_needs_are_asked_for_one_role_for_each_resource(argosy, run: Path) -> None:
    denied = (("create", "workflowtemplates"), ("patch", "workflowtemplates"), ("delete", "workflows"))
    code, checks = examined(argosy, run, Cluster(denied=(("create", "workflows"),)))
    assert (code, checks["your rights"]["state"]) == (1, "missing")
    code, checks = examined(argosy, run, Cluster(denied=denied[:2]))
    assert (code, checks["your rights"]["state"]) == (0, "unknown")
    assert "--verb=create,patch --resource=workflowtemplates.argoproj.io" in checks["your rights"]["remedy"]
    # Who could not remove a run was sent here, and heard that nothing was missing; who never will may submit.
    code, checks = examined(argosy, run, Cluster(denied=denied[2:]))
    assert (code, checks["your rights"]["state"]) == (0, "unknown")
    assert checks["your rights"]["detail"] == "you may not delete workflows.argoproj.io, for rm"
    assert "--verb=delete --resource=workflows.argoproj.io" in checks["your rights"]["remedy"]


@pytest.mark.parametrize(
    ("refusals", "arguments", "code", "said"),
    [
        ({"ServiceAccount": 'namespaces "research" not found'}, (), 2, "add --create-namespace"),
        (
            {"Namespace": "already exists"},
            ("--create-namespace",),
            0,
            "Namespace research: there already, left as it is",
        ),
        ({}, ("--create-namespace",), 0, "Namespace research: applied"),
    ],
)
def test_install_makes_a_namespace_or_leaves_it_alone(refusals, arguments, code, said, argosy, tmp_path) -> None:
    """Applied to one that others use, it would have refused their pods from then on."""
    with serving(Cluster(refusals=refusals), tmp_path) as kubeconfig:
        given = ("install", "-n", "research", "--apply", "--kubeconfig", str(kubeconfig))
        found, out, err = argosy(*given, *arguments)
    assert found == code, err
    assert said in out + err


def test_what_was_applied_before_a_refusal_is_told(argosy, tmp_path) -> None:
    with serving(Cluster(refusals={"RoleBinding": "no"}), tmp_path) as kubeconfig:
        code, out, _ = argosy("install", "-n", "research", "--apply", "--kubeconfig", str(kubeconfig))
    assert code == 1
    assert out.splitlines() == ["ServiceAccount argosy: applied", "Role argosy: applied"]


def test_who_installs_a_trigger_is_told_to_push_the_code_that_it_starts(argosy, run: Path) -> None:
    run.write_text('name = "r"\nscript = "train.py"\nstorage.uri = "s3://b/s"\ndataset.uri = "s3://b/c"\n[trigger]\n')
    served = [*KINDS, {"name": "cronworkflows"}, {"name": "workfloweventbindings"}]
    cluster = Cluster(objects={"/apis/argoproj.io/v1alpha1": {"resources": served}})
    with serving(cluster, run.parent) as kubeconfig:
        given = ("install", "-n", "research", "--apply", "--kubeconfig", str(kubeconfig), "--trigger", str(run))
        code, out, err = argosy(*given)
        assert code == 0, err
        cluster.seen.clear()
        with run.open("a") as file:
            file.write('[trigger.event_source.sqs]\nqueue = "q"\nregion = "eu-west-1"\n')
        refused, _, err = argosy(*given)
    # Its CronWorkflow was applied before the EventBus was refused, and started runs.
    assert (refused, cluster.seen) == (2, [])
    assert "Argo Events: its CRDs eventbus, eventsources, sensors are not there; install it whole: https://" in err
    assert f"argosy compile {run} --push -o workflow.yaml" in out
    assert f"argosy events {run}" in out


@pytest.mark.parametrize(
    ("reason", "message", "said"),
    [
        ("Unauthorized", "Unauthorized", "log in again until `kubectl auth whoami` answers"),
        (
            "Forbidden",
            'serviceaccounts "argosy" is forbidden: User "me" cannot patch resource "serviceaccounts" in API group ""',
            "may allow it, or apply what `argosy install` prints without --apply\n",
        ),
    ],
)
def test_who_is_not_let_in_is_told_what_to_do(reason, message, said, argosy, tmp_path) -> None:
    class Closed(Cluster):
        def write(self, *_: Any) -> tuple[int, dict[str, Any]]:
            return (401 if reason == "Unauthorized" else 403), {"reason": reason, "message": message}

    with serving(Closed(), tmp_path) as kubeconfig:
        code, _, err = argosy("install", "-n", "research", "--apply", "--kubeconfig", str(kubeconfig))
    assert code == 1
    assert message in err
    assert said in err


@pytest.mark.parametrize(
    "text", ["hello\n", "[1]\n", "a: b: c\n", "clusters: 1\n", "current-context: x\nclusters: []\n"]
)
def test_a_file_that_is_no_kubeconfig_is_wrong_input(text, argosy, tmp_path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    code, out, err = argosy("doctor", "-n", "research", "--kubeconfig", str(path))
    assert (code, out) == (2, "")
    assert str(path) in err
    assert "--kubeconfig" in err


LOGIN = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "IfAvailable"}


@pytest.mark.parametrize("command", ["no-such-login", "false"])
def test_a_login_program_that_fails_is_said_instead_of_going_on_as_nobody(command, argosy, tmp_path) -> None:
    with serving(Cluster(), tmp_path) as kubeconfig:
        user = {"exec": {**LOGIN, "command": command}}
        kubeconfig.write_text(kubeconfig.read_text().replace("user: {token: t}", f"user: {json.dumps(user)}"))
        code, out, err = argosy("ls", "-n", "research", "--kubeconfig", str(kubeconfig))
    assert (code, out) == (2, "")
    assert "no credentials (" in err
    assert "log in until `kubectl auth whoami` answers" in err
    assert err.count("\n") == 1


def test_nobody_is_told_to_log_in(argosy, tmp_path) -> None:
    class Anonymous(Cluster):
        def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
            return super().answer(path, query) if path == "/version" else None

    with serving(Anonymous(), tmp_path) as kubeconfig:
        code, out, _ = argosy("doctor", "-n", "research", "--kubeconfig", str(kubeconfig))
    assert code == 1
    assert out.startswith("MISSING  API server: ")
    assert "lets nobody in with these credentials" in out


def test_who_may_not_ask_what_is_served_has_logged_in_all_the_same(argosy, tmp_path) -> None:
    class Undiscovered(Cluster):
        def write(self, *_: Any) -> tuple[int, dict[str, Any]]:
            raise AssertionError("nothing further is asked")

    text = 'forbidden: User "me" cannot get path "/apis"'
    with serving(Undiscovered(refused={"/apis": text}), tmp_path) as kubeconfig:
        code, out, _ = argosy("doctor", "-n", "research", "--kubeconfig", str(kubeconfig))
    assert code == 1
    assert "lets nobody in" not in out
    assert "--clusterrole=system:discovery" in out


def test_a_kind_that_nobody_installed_is_named(argosy, tmp_path) -> None:
    """An API server says no more of it than ``404 page not found``."""

    class Bare(Cluster):
        def write(self, *_: Any) -> tuple[int, Any]:
            return 404, "404 page not found"

    with serving(Bare(), tmp_path) as kubeconfig:
        code, _, err = argosy("install", "-n", "research", "--apply", "--kubeconfig", str(kubeconfig))
    assert code == 1
    assert (
        "/api/v1/namespaces/research/serviceaccounts/argosy is not served: no such kind of object is installed" in err
    )


def test_a_gang_whose_kind_is_not_there_ends_with_the_cause_and_its_class(argosy, tmp_path) -> None:
    class WithoutJobs(Cluster):
        def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
            return None if path.endswith("/jobs") else super().answer(path, query)

    pod = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    spec = {"parallelism": 1, "completions": 1, "completionMode": "Indexed", "template": pod}
    gang = tmp_path / "gang.yaml"
    gang.write_text(json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "g"}, "spec": spec}))
    with serving(WithoutJobs(), tmp_path) as kubeconfig:
        code, _, err = argosy("supervise", str(gang), "-n", "research", "--kubeconfig", str(kubeconfig))
    assert (code, "argosy: config_or_rbac: " in err) == (78, True), err


@pytest.mark.parametrize(
    ("said", "created", "stored"),
    [("denied by the policy of the house", 0, 0), (f"x {NO_REHEARSAL}", 1, 1), ("", 2, 1)],
)
def test_the_code_of_what_the_cluster_refuses_is_not_pushed(
    said: str, created: int, stored: int, argosy, run: Path, monkeypatch
) -> None:
    class Judging(Cluster):
        def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            if said and not self.seen:
                self.seen.append({})
                return 400, {"reason": "BadRequest", "message": said}
            self.seen.append(document)
            return 201, document

    cluster = Judging()
    with S3Server(("lake",)) as server, serving(cluster, run.parent) as kubeconfig:
        for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "ENDPOINT_URL": server.endpoint}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        run.write_text(RUN.format(uri="s3://lake/store"))
        code, _, err = argosy("submit", str(run), "--detach", "--kubeconfig", str(kubeconfig))
        assert (code, said in err) == (int(not created), not created or not said), err
        assert len(list(filter(None, cluster.seen))) == created
        assert len(server.buckets["lake"].objects) == stored
