"""A cluster's run, read through an API that behaves as badly as real ones do."""

from __future__ import annotations

import base64
import gzip
import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.steps.cluster.connecting import connect
from argosy.steps.gang import evidence
from argosy.steps.gang.host import PodState
from argosy.steps.runlog import RunLog
from argosy.steps.store import open_store
from argosy.workflows.cluster.pod_logs import last_lines, pods_of_steps
from tests.cli.api_server import FakeApi, serving

NODES = {
    "1": {"id": "1", "type": "DAG", "displayName": "w-1", "phase": "Failed"},
    "2": {"id": "2", "type": "Retry", "displayName": "train", "phase": "Failed", "templateName": "train"},
    "3": {
        **{"id": "3", "type": "Pod", "displayName": "train(0)", "phase": "Failed", "templateName": "train"},
        **{"startedAt": "2026-11-22T16:00:00Z", "finishedAt": "2026-11-22T16:01:00Z"},
        "outputs": {"exitCode": "70"},
    },
    "4": {
        **{"id": "4", "type": "Pod", "displayName": "gate", "phase": "Succeeded", "templateName": "gate"},
        "outputs": {"parameters": [{"name": "decision", "value": "refuse"}, {"name": "reason", "value": "too bad"}]},
    },
}
STAMP = "2026-11-22T16:00:{:02d}.{:09d}Z line {}"


def workflow(**status: Any) -> dict[str, Any]:
    facts = {"argosy.dev/run-name": "gpt", "argosy.dev/store-uri": "s3://b/store"}
    metadata: dict[str, Any] = {
        "name": "w-1",
        "namespace": "research",
        "uid": "u",
        "creationTimestamp": "2026-11-22T16:00:00Z",
    }
    metadata["annotations"] = {"argosy.dev/run-name": "gpt"}  # as the controller copies it from the template
    return {
        "metadata": metadata,
        "spec": {
            "workflowTemplateRef": {"name": "gpt"},
            "arguments": {"parameters": [{"name": "run-id", "value": "r"}]},
        },
        "status": {
            **{"phase": "Failed", "startedAt": "2026-11-22T16:00:00Z", "finishedAt": "2026-11-22T16:01:00Z"},
            "storedWorkflowTemplateSpec": {
                "workflowMetadata": {"annotations": facts},
                "arguments": {"parameters": [{"name": "run-id", "value": ""}, {"name": "args", "value": "[]"}]},
                "templates": [{"container": {"envFrom": [{"secretRef": {"name": "bucket-keys"}}]}}],
            },
            **(status or {"nodes": NODES}),
        },
    }


def pod(**state: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "w-1-train", "creationTimestamp": "2026-11-22T16:00:00Z"}
    metadata["annotations"] = {"workflows.argoproj.io/node-id": "3"}
    phase = "Running" if "running" in state else "Failed"
    spec = {"containers": [{"name": "main"}, {"name": "wait"}]}
    status = {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]}
    return {"metadata": metadata, "spec": spec, "status": status}


@pytest.fixture
def no_keys(monkeypatch, tmp_path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


PACKED = base64.b64encode(gzip.compress(json.dumps(NODES).encode())).decode()


@pytest.mark.parametrize("status", [{"nodes": NODES}, {"compressedNodes": PACKED}], ids=["plain", "compressed"])
def test_without_keys_status_says_what_the_api_knows(status, argosy, tmp_path, no_keys) -> None:
    failed = pod(terminated={})
    lines = ["2026-11-22T16:00:01.000000000Z argosy: user_exception: it broke", "2026-11-22T16:00:02.000000000Z bye"]
    with serving(FakeApi(workflow(**status), [failed], lines), tmp_path) as kubeconfig:
        place = ("--kubeconfig", str(kubeconfig))
        code, out, err = argosy("status", "w-1", *place, "--json")
        assert code == 0
        found = json.loads(out)
        assert (found["phase"], found["name"], found["run_id"]) == ("Failed", "gpt", "r")
        assert found["gate"] == {"decision": "refuse", "reason": "too bad"}
        assert "the secret bucket-keys of namespace research" in err
        assert "  train  Failed     1 min 00 s\n" in argosy("status", *place)[1]
        code, out, err = argosy("explain", *place)
        assert (code, out) == (1, "")
        assert "AWS_ACCESS_KEY_ID" in err


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_of_a_training_whose_log_cannot_be_read_nobody_says_how_far_it_came(phase, argosy, tmp_path, no_keys) -> None:
    """It was said not to have begun, also when it had succeeded, and that its script printed no step."""
    digest = {"outputs": {"parameters": [{"name": "checkpoint-digest", "value": "a" * 64}]}}
    node = {**NODES["3"], "displayName": "train", "phase": phase, **digest}
    with serving(FakeApi(workflow(nodes={"3": node}, phase=phase)), tmp_path) as kubeconfig:
        _, out, _ = argosy("status", "w-1", "--kubeconfig", str(kubeconfig))
    assert "How far it came stands in its event log alone." in out
    assert "not begun" not in out
    assert "progress_pattern" not in out


def test_what_was_asked_again_and_answered_is_not_why_a_step_ended(tmp_path) -> None:
    """A run that somebody stopped was explained by an answer of the store that had broken off, long before."""
    again = "argosy: cannot read s3://b/x: the store did not serve it; it is asked again for 180 s"
    for told, quote in (
        ([again, "bye"], "bye"),
        (["bye", again], "bye"),
        ([again, "argosy: fenced: another one", "bye"], "argosy: fenced"),
    ):
        lines = [
            STAMP.format(number, 0, number).rpartition(" line")[0] + f" {line}" for number, line in enumerate(told)
        ]
        with serving(FakeApi(workflow(nodes=NODES), [pod(terminated={})], lines), tmp_path) as kubeconfig:
            api = connect(kubeconfig=str(kubeconfig))
            (found,) = last_lines(api, pods_of_steps(api, "w-1")).values()
        assert found.startswith(quote)


def test_a_thousand_pods_that_give_no_log_do_not_hold_the_supervisor(tmp_path, monkeypatch) -> None:
    """Each might take half a minute, one after the other, within a look at the gang's pods."""
    monkeypatch.setattr(evidence, "WORDS_SECONDS", 0.2)
    over, asked = threading.Event(), []

    class Silent(FakeApi):
        def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
            if path.endswith("/log"):
                asked.append(path)
                over.wait(20)
            return super().answer(path, query)

    failed = [pod(terminated={}) for _ in range(1000)]
    with serving(Silent(workflow()), tmp_path) as kubeconfig:
        words = evidence.LastWords(connect(kubeconfig=str(kubeconfig)))
        for number, each in enumerate(failed):
            state = PodState(name=f"pod-{number}", index=number, node="n", phase="Failed", exit_code=127)
            assert words.of(state, each) == state
        over.set()
    assert len(asked) == 1


def test_a_suspended_workflow_is_said_to_be_one(argosy, tmp_path, no_keys) -> None:
    """Its phase is Running, and nothing of it ran: a person waited for what somebody has to resume."""
    node = {**NODES["3"], "displayName": "train", "phase": "Succeeded"}
    suspended = workflow(nodes={"3": node}, phase="Running", finishedAt=None)
    suspended["spec"]["suspend"] = True  # and Argo writes finishedAt: null until it ends
    with serving(FakeApi(suspended), tmp_path) as kubeconfig:
        _, out, _ = argosy("status", "w-1", "--kubeconfig", str(kubeconfig))
    assert "The Workflow is suspended, no further step begins: argo resume w-1 -n research" in out


def test_one_that_is_suspended_and_was_told_to_end_needs_both_words(argosy, tmp_path, no_keys) -> None:
    """Argo 4.0.7 ends its pods and leaves it Running, until somebody resumes it."""
    running = workflow(nodes={}, phase="Running", finishedAt=None)
    for spec, said in (
        ({"shutdown": "Stop"}, "Argo was told to end it (shutdown: Stop)"),
        ({"shutdown": "Terminate", "suspend": True}, "it ends once it is resumed: argo resume w-1 -n research"),
    ):
        running["spec"] |= spec
        with serving(FakeApi(running), tmp_path) as kubeconfig:
            _, out, _ = argosy("status", "w-1", "--kubeconfig", str(kubeconfig))
        assert said in out


def test_one_that_was_stopped_while_it_waited_for_a_lock_is_no_success(argosy, tmp_path, no_keys) -> None:
    """Argo 4.0.7 calls it Succeeded, with a root that failed: who followed it was told that it had trained (0)."""
    root = {"id": "w-1", "name": "w-1", "displayName": "w-1", "type": "DAG", "phase": "Failed"}
    admit = {
        **NODES["3"],
        "displayName": "admit",
        "phase": "Failed",
        "message": "workflow shutdown with strategy: Terminate",
    }
    queued = workflow(nodes={"w-1": root, "3": admit}, phase="Succeeded")
    for shutdown, phase in (({}, "Succeeded"), ({"shutdown": "Terminate"}, "Failed")):
        queued["spec"] |= shutdown
        with serving(FakeApi(queued), tmp_path) as kubeconfig:
            _, out, _ = argosy("status", "w-1", "--kubeconfig", str(kubeconfig))
        assert f": {phase}, " in out
    assert "It was stopped at the step admit." in out


class Kept(FakeApi):
    """It keeps what is written."""

    def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.kept = [*getattr(self, "kept", []), document]
        return super().write(method, path, document)


def test_one_that_no_controller_takes_up_says_so(argosy, tmp_path, no_keys) -> None:
    """Its phase was Pending, for ever; whoever had submitted it with --detach was not told why."""
    for seconds, said in ((2, False), (90, True)):
        unseen = workflow(phase="", startedAt=None, finishedAt=None)
        made = datetime.now(UTC) - timedelta(seconds=seconds)
        unseen["metadata"]["creationTimestamp"] = made.strftime("%Y-%m-%dT%H:%M:%SZ")
        with serving(FakeApi(unseen), tmp_path) as kubeconfig:
            _, out, _ = argosy("status", "w-1", "--kubeconfig", str(kubeconfig))
        assert ("No Argo controller has taken it up yet" in out) == said


def test_one_that_was_stopped_before_it_trained_says_so(argosy, tmp_path, no_keys) -> None:
    node = {
        **NODES["3"],
        "displayName": "train",
        "phase": "Failed",
        "message": "workflow shutdown with strategy:  Stop",
    }
    early = {**node, "message": "main: Error (exit code 143)", "outputs": {"exitCode": "143"}}
    for each in (node, early):
        stopped = workflow(nodes={"3": each}, phase="Failed", message="Stopped with strategy 'Stop'")
        with serving(FakeApi(stopped), tmp_path) as kubeconfig:
            _, out, _ = argosy("status", "w-1", "--kubeconfig", str(kubeconfig))
            stopped["status"].pop("storedWorkflowTemplateSpec")
            _, told, _ = argosy("explain", "w-1", "--kubeconfig", str(kubeconfig))
        assert "Stopped with strategy 'Stop'." in out
        assert "The step train failed" not in out
        assert "The workflow was stopped at the step train." in told
        assert "start it again" in told


def test_stop_ends_one_that_is_suspended(argosy, tmp_path, no_keys) -> None:
    """And one of which no step has begun, for want of an image: its exit handler waited a quarter of an hour for it."""
    for phase, how, said in (("Running", "Stop", "grace period"), ("Pending", "Terminate", "no step of it had begun")):
        held = workflow(nodes={"3": {**NODES["3"], "phase": phase}}, phase="Running", finishedAt=None)
        held["spec"]["suspend"] = True
        api = Kept(held)
        with serving(api, tmp_path) as kubeconfig:
            code, out, _ = argosy("stop", "w-1", "--kubeconfig", str(kubeconfig))
        assert (code, said in out) == (0, True)
        assert [each["spec"] for each in api.kept] == [{"shutdown": how, "suspend": False}]


def test_a_step_that_argo_makes_no_pod_of_is_woken(argosy, tmp_path, no_keys) -> None:
    """Retried before the last pod was gone, the run stood still for twenty minutes, and nobody said so."""
    node = {"type": "Pod", "displayName": "train(0)", "templateName": "train", "phase": "Pending"}
    # A command that is the same at each look: who followed the run had it as news every second.
    said = "kubectl label --overwrite -n research workflow w-1 argosy.dev/woken=$(date +%s)"
    for seconds in (30, 90):
        began = datetime.now(UTC) - timedelta(seconds=seconds)
        node["startedAt"] = began.strftime("%Y-%m-%dT%H:%M:%SZ")
        with serving(FakeApi(workflow(nodes={"3": {**NODES["3"], **node}}, phase="Running")), tmp_path) as kubeconfig:
            _, out, _ = argosy("status", "w-1", "--kubeconfig", str(kubeconfig))
        assert (said in out) == (seconds == 90)


def test_a_step_whose_node_does_not_answer_is_told(argosy, tmp_path, no_keys) -> None:
    """The supervisor's node lost its power: Argo called its pod Running, for as long as the node was away."""
    node = {**NODES["3"], "displayName": "train", "phase": "Running"}
    pod = {
        "metadata": {
            "name": "w-1-train",
            "creationTimestamp": "2026-11-22T16:00:00Z",
            "annotations": {"workflows.argoproj.io/node-id": "3"},
        },
        "spec": {"nodeName": "node-c", "containers": [{"name": "main"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]},
    }
    api = FakeApi(workflow(nodes={"3": node}, phase="Running"), [pod])
    with serving(api, tmp_path) as kubeconfig:
        argosy("explain", "w-1", "--kubeconfig", str(kubeconfig))
        assert api.lists == ["workflows.argoproj.io/workflow=w-1,!argosy.dev/gang"], "of a gang there are thousands"
        _, out, _ = argosy("status", "w-1", "--kubeconfig", str(kubeconfig))
    assert "node-c, the node of pod w-1-train, does not answer, and Argo waits for it" in out
    assert "kubectl delete node node-c" in out


def test_why_a_step_has_no_pod_is_said_before_argo_gives_it_up(argosy, tmp_path, no_keys) -> None:
    refused = 'pods "w-1-admit" is forbidden: failed quota: q: must specify limits.memory for: init,wait'
    node = {**NODES["3"], "displayName": "admit(0)", "templateName": "admit", "phase": "Error", "message": refused}
    again = {**node, "id": "4", "displayName": "admit(1)", "phase": "Running", "message": ""}
    for nodes in ({"3": node}, {"3": node, "4": again}):
        with serving(FakeApi(workflow(nodes=nodes, phase="Running")), tmp_path) as kubeconfig:
            _, out, _ = argosy("status", "w-1", "--kubeconfig", str(kubeconfig))
        assert f"The step admit ended in an error: {refused}." in out


def test_nodes_in_a_database_are_refused_by_name(argosy, tmp_path) -> None:
    with serving(FakeApi(workflow(offloadNodeStatusVersion="fnv:1")), tmp_path) as kubeconfig:
        code, out, err = argosy("status", "w-1", "--kubeconfig", str(kubeconfig))
    assert (code, out) == (2, "")
    assert "keeps this Workflow's nodes in its database" in err


def test_a_followed_log_that_breaks_off_is_read_on_and_no_line_comes_twice(argosy, tmp_path) -> None:
    log = [STAMP.format(index // 4, index, index) for index in range(10)]
    log.insert(5, '2026-11-22T16:00:01.000000004Z time=x level=INFO msg="sub-process" argo=true')
    api = FakeApi(workflow(nodes={}, phase="Running"), [pod(running={})], log, at_once=6)
    with serving(api, tmp_path) as kubeconfig:
        code, out, err = argosy("logs", "-f", "w-1", "--kubeconfig", str(kubeconfig))
    assert code == 0, err
    assert out.splitlines() == [f"w-1-train | line {index}" for index in range(10)]
    assert len(api.queries) > 1
    assert api.queries[1]["sinceTime"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("status", "gone", "--kubeconfig", "{kubeconfig}"), "no such workflow in namespace research; they are listed"),
        (("status", "gone", "-n", "no", "--kubeconfig", "{kubeconfig}"), "--namespace 'no': the cluster has no such"),
        (("status", "-n", "no", "--kubeconfig", "{kubeconfig}"), "--namespace 'no': the cluster has no such namespace"),
        (("ls", "-n", "no", "--kubeconfig", "{kubeconfig}"), "--namespace 'no': the cluster has no such namespace"),
        (("status", "x", "--context", "two", "--kubeconfig", "{kubeconfig}"), "two"),
        (("status", "s3://bucket/nothing"), "ends in /NAME/runs/RUN_ID"),
        (("status", "file:///no/store/x/runs/y"), "there is no folder /no/store here; correct it"),
        (("status", "gone"), "a cluster's run is found with -n NAMESPACE"),
    ],
)
def test_what_cannot_be_found_is_said(arguments, said, argosy, tmp_path) -> None:
    with serving(FakeApi(workflow()), tmp_path) as kubeconfig:
        code, out, err = argosy(*(each.format(kubeconfig=kubeconfig) for each in arguments))
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("stores", [("s3://b/store",), ("s3://b/store", "s3://b/other")])
def test_one_that_is_gone_is_looked_for_in_the_store_of_the_others(stores, argosy, tmp_path) -> None:
    """The reader was to fill in STORE_URI and NAME."""

    class Others(FakeApi):
        def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
            if not path.endswith("/workflows"):
                return super().answer(path, query)
            facts = [{"argosy.dev/run-name": "gpt", "argosy.dev/store-uri": each} for each in stores]
            made = {"name": "gone", "creationTimestamp": "2026-11-22T16:00:00Z"}
            return json.dumps({"items": [{"metadata": {**made, "annotations": each}} for each in facts]}).encode()

    with serving(Others(workflow()), tmp_path) as kubeconfig:
        code, _, err = argosy("status", "gone", "-n", "research", "--kubeconfig", str(kubeconfig))
        assert code == 2
        assert err.endswith(": argosy ls s3://b/store\n" if len(stores) == 1 else "storage.uri of its run.toml\n")
        # Deleted between the list and the look at it, it was shown as one that is pending.
        assert argosy("top", "-n", "research", "--kubeconfig", str(kubeconfig)) == (0, "no run yet\n", "")


WORKFLOW = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: w-1}
spec: {entrypoint: main, templates: [{name: main, container: {image: "a:1", command: ["true"]}}]}
"""


def test_an_api_server_that_is_away_for_a_while_is_not_the_end_of_who_follows(argosy, tmp_path, monkeypatch) -> None:
    """``argosy submit`` ended with exit code 1, as if the run had failed, and the run went on."""
    monkeypatch.setattr("argosy.workflows.cluster.place.PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr("argosy.workflows.cli.submit.POLL_SECONDS", 0.05)
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    ended = workflow(nodes={}, phase="Succeeded")
    ended["metadata"]["annotations"] = {}

    class Upgraded(FakeApi):
        def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            self.away = 3
            return 201, document

    with serving(Upgraded(ended), tmp_path) as kubeconfig:
        code, out, err = argosy("submit", str(tmp_path / "w.yaml"), "--kubeconfig", str(kubeconfig))
        assert code == 0, err
        assert "the run goes on meanwhile, and is asked for again" in out


@pytest.fixture
def followed(tmp_path, monkeypatch) -> dict[str, Any]:
    """A run of ours that goes on with ``r``, to be submitted as ``w.yaml``: how it stands."""
    monkeypatch.setattr("argosy.workflows.cli.submit.POLL_SECONDS", 0.05)
    (tmp_path / "store").mkdir()
    uri = f"file://{tmp_path}/store"
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    own = workflow(nodes={}, phase="Running", finishedAt=None)
    own["status"].pop("storedWorkflowTemplateSpec")
    own["metadata"]["annotations"] = {"argosy.dev/run-name": "gpt", "argosy.dev/store-uri": uri}
    log = RunLog(open_store(uri), "gpt/runs/r", "train")
    log.append("checkpoint_committed", step=10, digest="a" * 64)
    log.close()
    return own


def test_what_a_run_did_before_it_went_on_is_not_told_as_if_it_happened_now(followed, argosy, tmp_path) -> None:
    """All that the first workflow had done was printed with the seconds of the second, thousands of checkpoints."""
    followed["status"]["phase"] = "Succeeded"
    for year, told in ((2099, False), (2001, True)):
        followed["metadata"]["creationTimestamp"] = f"{year}-11-22T16:00:00Z"
        with serving(FakeApi(followed), tmp_path) as kubeconfig:
            code, out, err = argosy("submit", str(tmp_path / "w.yaml"), "--kubeconfig", str(kubeconfig))
        assert code == 0, err
        assert ("] checkpoint: step 10" in out) == told, out


def test_a_run_that_is_deleted_while_it_is_followed_is_said_to_be(followed, argosy, tmp_path) -> None:
    """``no such workflow`` stood there with exit code 2, and a place in the store to be filled in by the reader."""

    class Deleted(FakeApi):
        looks = 0

        def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
            own = path.endswith("/w-1")
            self.looks += own
            return None if own and self.looks > 6 else super().answer(path, query)

    for verb, ended in (("submit", str(tmp_path / "w.yaml")), 1), (("logs", "-f", "w-1"), 0):
        with serving(Deleted(followed), tmp_path) as kubeconfig:
            code, _, err = argosy(*verb, "--kubeconfig", str(kubeconfig))
        assert code == ended, err
        assert "w-1 was deleted before its end, and its gang with it" in err
        assert f"argosy status file://{tmp_path}/store/gpt/runs/r " in err


def test_a_namespace_that_is_not_there_is_made_and_not_an_account_in_it(argosy, tmp_path) -> None:
    """``argosy install`` without --create-namespace, which was advised, is refused then."""
    (tmp_path / "w.yaml").write_text(WORKFLOW.replace("spec: {", "spec: {serviceAccountName: argosy, "))
    with serving(FakeApi(workflow()), tmp_path) as kubeconfig:
        code, _, err = argosy("submit", str(tmp_path / "w.yaml"), "-n", "gone", "--kubeconfig", str(kubeconfig))
    assert code == 2
    assert "argosy install -n gone --create-namespace --apply" in err


def test_who_follows_a_cluster_that_is_gone_is_let_go_in_the_end(argosy, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("argosy.workflows.cluster.place.PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr("argosy.workflows.cli.submit.POLL_SECONDS", 0.05)
    monkeypatch.setattr("argosy.workflows.cli.submit.GONE_SECONDS", 0.5)
    (tmp_path / "w.yaml").write_text(WORKFLOW)

    class Gone(FakeApi):
        def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            self.away = 1 << 30
            return 201, document

    with serving(Gone(workflow(nodes={}, phase="Running")), tmp_path) as kubeconfig:
        code, _, err = argosy("submit", str(tmp_path / "w.yaml"), "--kubeconfig", str(kubeconfig))
    assert code == 130
    assert "the cluster was not heard of for 0.5 s: " in err
    assert "argosy status" in err


@pytest.mark.parametrize(
    ("phase", "more", "said"),
    [
        ("Running", (), "no lines in namespace research so far\n"),
        ("Failed", (), "no lines in namespace research: no pod of it is there, and nothing that one wrote is kept\n"),
        ("Failed", ("--pod", "x"), "no lines of pods named 'x' in namespace research\n"),
    ],
)
def test_why_there_are_no_lines(phase, more, said, argosy, tmp_path) -> None:
    own = workflow(nodes={}, phase=phase)
    own["metadata"]["annotations"] = {}
    own["status"].pop("storedWorkflowTemplateSpec")
    with serving(FakeApi(own), tmp_path) as kubeconfig:
        code, out, err = argosy("logs", "w-1", *more, "--kubeconfig", str(kubeconfig))
    assert (code, out) == (0, "")
    assert err.startswith(said)


def test_a_pod_that_the_cluster_refuses_has_no_log_to_read(argosy, tmp_path) -> None:
    message = 'pods "w-1-admit-1" is forbidden: failed quota: small: must specify limits.cpu for: main'
    node = {"id": "1", "type": "Pod", "displayName": "admit(0)", "templateName": "admit", "phase": "Error"}
    own = workflow(nodes={"1": {**node, "message": message}}, phase="Error")
    own["status"].pop("storedWorkflowTemplateSpec")
    with serving(FakeApi(own), tmp_path) as kubeconfig:
        _, out, _ = argosy("explain", "w-1", "--kubeconfig", str(kubeconfig))
    assert f"The workflow failed at the step admit: {message}." in out
    assert "What to do: the cluster made no pod of it, so it has no log" in out


def test_a_step_whose_image_has_no_argosy_is_told_so(argosy, tmp_path) -> None:
    """What stood last was Argo's own, which says the same of whatever ended."""
    gone = "python: Error while finding module specification for 'argosy.steps.train' (No module named 'argosy')"
    node = {**NODES["3"], "displayName": "train", "phase": "Failed", "message": "main: Error (exit code 1)"}
    lines = [STAMP.format(number, 0, number).rpartition(" line")[0] + f" {line}"
             for number, line in enumerate((gone, "Error: exit status 1"))]  # fmt: skip
    own = workflow(nodes={"3": node}, phase="Failed")
    own["status"].pop("storedWorkflowTemplateSpec")
    with serving(FakeApi(own, [pod(terminated={})], lines), tmp_path) as kubeconfig:
        _, out, _ = argosy("explain", "w-1", "--kubeconfig", str(kubeconfig))
    assert f"    | {gone}" in out
    assert "What to do: the image of this step has no argosy" in out


def test_a_namespace_without_runs_is_named_in_what_comes_next(argosy, tmp_path) -> None:
    class Empty(FakeApi):
        def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
            return b'{"items": []}' if path.endswith("/workflows") else super().answer(path, query)

    with serving(Empty(workflow(), namespace="there"), tmp_path) as kubeconfig:
        place = ("-n", "there", "--kubeconfig", str(kubeconfig))
        again = f"argosy submit run.toml --kubeconfig {kubeconfig} -n there"
        assert again in argosy("status", *place)[2]
        assert again in argosy("ls", *place)[1]
        for verb in (("status",), ("status", "w-2"), ("ls",), ("logs", "w-2"), ("top",)):
            code, _, err = argosy(*verb, "-n", "gone", "--kubeconfig", str(kubeconfig))
            assert (code, "'gone': the cluster has no such namespace" in err) == (2, True), verb


def test_an_account_without_argos_rights_is_told_of(argosy, tmp_path) -> None:
    message = "wait: Error (exit code 64): workflowtaskresults.argoproj.io is forbidden: User cannot create resource"
    node = {"id": "1", "type": "Pod", "displayName": "admit(0)", "templateName": "admit", "phase": "Error"}
    own = workflow(nodes={"1": {**node, "message": message, "outputs": {"exitCode": "0"}}}, phase="Error")
    own["status"].pop("storedWorkflowTemplateSpec")
    with serving(FakeApi(own), tmp_path) as kubeconfig:
        _, out, _ = argosy("explain", "w-1", "--kubeconfig", str(kubeconfig))
    assert "What to do: the run's account may not do what Argo needs: `argosy install -n research --apply`." in out


def test_what_is_left_after_rm_is_looked_for_where_it_was_removed(argosy, tmp_path) -> None:
    own = workflow(nodes={}, phase="Failed")
    own["metadata"]["annotations"] = {}
    own["status"].pop("storedWorkflowTemplateSpec")
    with serving(FakeApi(own), tmp_path) as kubeconfig:
        code, out, err = argosy("rm", "w-1", "-n", "research", "--kubeconfig", str(kubeconfig))
    assert code == 0, err
    assert f"argosy ls --kubeconfig {kubeconfig} -n research" in out


@pytest.fixture
def refused() -> FakeApi:
    """A training whose store takes nothing, as its supervisor says."""
    node = {**NODES["3"], "displayName": "train", "phase": "Running"}
    node["finishedAt"] = ""
    own = workflow(nodes={"3": node}, phase="Running", finishedAt=None)
    said = "argosy: event log not written since 2026-11-22T16:00:05Z: disk_full: no; it is kept until it can be"
    return FakeApi(own, [pod(running={})], [STAMP.format(5, 0, 0).replace("line 0", said)])


WRITTEN = STAMP.format(9, 0, 0).replace("line 0", "argosy: event log written again")


def test_that_a_store_takes_nothing_is_told_until_it_does(refused, argosy, tmp_path, no_keys) -> None:
    """Nothing but the log of the supervisor's pod said so: a training that would end of it looked well."""
    with serving(refused, tmp_path) as kubeconfig:
        place = ("w-1", "--kubeconfig", str(kubeconfig))
        assert "\n  the store has taken nothing for " in argosy("status", *place)[1]
        assert "warning: w-1: the store has taken nothing for " in argosy("top", *place)[2]
        stored = refused.workflow["status"].pop("storedWorkflowTemplateSpec")
        assert "\nThe store has taken nothing for " in argosy("explain", *place)[1]
        refused.workflow["status"]["storedWorkflowTemplateSpec"] = stored
        told = len(refused.queries)
        for path in ("/pods/w-1-train/log", "/pods"):  # without the right to it the rest is told as before
            refused.refused = {f"/api/v1/namespaces/research{path}": "no"}
            code, out, err = argosy("status", *place)
            assert (code, "taken nothing" in out, "warning: only what" in err) == (0, False, True)
        refused.refused = {}
        refused.log.append(WRITTEN)
        assert "taken nothing" not in argosy("status", *place)[1]
        assert len(refused.queries) > told


def test_who_follows_a_run_is_told_that_its_store_takes_nothing(
    refused, followed, argosy, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("argosy.workflows.cli.submit.LISTEN_SECONDS", 0.0)

    class Mended(FakeApi):
        looks = 0

        def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
            if path.endswith("/log") and len(self.queries) == 3:
                self.log.append(WRITTEN)
            self.looks += path.endswith("/w-1")
            if self.looks == 60:
                self.workflow["status"]["phase"] = "Succeeded"
            return super().answer(path, query)

    followed["status"] |= {"nodes": refused.workflow["status"]["nodes"]}
    with serving(Mended(followed, refused.pods, refused.log), tmp_path) as kubeconfig:
        _, out, err = argosy("submit", str(tmp_path / "w.yaml"), "--kubeconfig", str(kubeconfig))
    assert out.count("] warning: the store has taken nothing for ") == 1, out + err
    assert out.count("] the event log can be written again after ") == 1
