"""What holds for the YAML of every run: placeholders, security, retries, one owner of restarts."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.objects import SPARES_ANNOTATION
from argosy.workflows.code import CodeArchive
from argosy.workflows.compile import build_workflow, compile_run
from argosy.workflows.engine.expression.evaluate import evaluate_boolean
from argosy.workflows.gang.documents import REPLACED_PODS
from argosy.workflows.spec.run import TrainingRun, warnings
from tests.compile.unfactored import in_one_order, loaded, unfactored

FOLDER = Path(__file__).resolve().parents[1] / "goldens"
NAMES = ("two-nodes-cpu", "two-by-eight-gpu", "single-node", "elastic", "two-nodes-cpu.template")
GOLDENS = [FOLDER / f"{name}.yaml" for name in NAMES]
WHOLE = re.compile(r"(--[a-z][a-z-]*=)?\{\{(workflow|tasks)\.[a-z.-]+\}\}")
ESCAPED = re.compile(r"--[a-z][a-z-]*=\{\{=replace\(inputs\.parameters\['[a-z-]+'\], '\$', '\$\$'\)\}\}")
CHANNEL = "argosy-channel-{{workflow.uid}}"
"""Name of the channel's Secret: the API server makes the uid, nobody chooses it."""
WHEN = re.compile(r"\{\{tasks\.(admit|gate)\.outputs\.parameters\.decision\}\} == (start|promote)")


def strings(node: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """(key, text) of every string below ``node``."""
    if isinstance(node, str):
        yield key, node
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, child in children:
        yield from strings(child, name if isinstance(name, str) else key)


def load(path: Path) -> dict[str, Any]:
    return unfactored(loaded(path.read_text()))


def test_labels_are_of_all_pods_and_annotations_of_the_gangs() -> None:
    fields = {"name": "r", "script": "train.py", "code": "", "storage": {"uri": "s3://b"}}
    pod = {"labels": {"team": "vision"}, "annotations": {"k8s.v1.cni.cncf.io/networks": "rdma"}}
    run = TrainingRun.model_validate({**fields, "gang": {"pod": pod}})
    spec = loaded(compile_run(run).decode())["spec"]
    assert spec["podMetadata"] == {"labels": {"team": "vision"}}
    assert "podMetadata" not in loaded(compile_run(TrainingRun.model_validate(fields)).decode())["spec"]


def test_labels_by_which_the_gangs_pods_avoid_each_other_are_not_the_supervisors() -> None:
    fields = {"name": "r", "script": "train.py", "code": "", "storage": {"uri": "s3://b"}}
    by = {"matchLabels": {"app": "train"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    term = {"labelSelector": by, "topologyKey": "kubernetes.io/hostname"}
    wished = {"weight": 1, "podAffinityTerm": {"labelSelector": {"matchLabels": {"near": "a"}}, "topologyKey": "rack"}}
    affinity = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wished]},
    }
    labels = {"app": "train", "tier": "gpu", "near": "a", "team": "vision", "kueue.x-k8s.io/queue-name": "q"}
    run = TrainingRun.model_validate({**fields, "gang": {"pod": {"labels": labels, "affinity": affinity}}})
    assert loaded(compile_run(run).decode())["spec"]["podMetadata"] == {"labels": {"team": "vision"}}


@pytest.mark.parametrize(
    "label", ["workflows.argoproj.io/workflow", "scheduling.x-k8s.io/pod-group", "argosy.dev/role"]
)
def test_no_label_takes_the_steps_pods_from_their_controller(label: str) -> None:
    fields = {"name": "r", "script": "train.py", "code": "", "storage": {"uri": "s3://b"}}
    run = TrainingRun.model_validate({**fields, "gang": {"pod": {"labels": {label: "other"}}}})
    assert "podMetadata" not in loaded(compile_run(run).decode())["spec"]


def containers(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in document["spec"]["templates"] if "container" in each]


golden = pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.stem)


@golden
def test_a_placeholder_is_a_whole_value(path: Path) -> None:
    found = [(key, text) for key, text in strings(load(path)) if "{{" in text]
    assert found
    for key, text in found:
        if text == CHANNEL:
            continue
        rule = WHEN if key == "when" else ESCAPED if "inputs." in text else WHOLE
        assert rule.fullmatch(text), f"{key}: {text}"


@golden
def test_every_pod_is_restricted(path: Path, gang_of: Callable[..., dict[str, Any]]) -> None:
    document = load(path)
    pods = [(each["securityContext"], each["container"]["securityContext"]) for each in containers(document)]
    gang = gang_of(document)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pods.append((gang["securityContext"], gang["containers"][0]["securityContext"]))
    for each in containers(document):
        patch = json.loads(each["podSpecPatch"])
        executor = [*patch["initContainers"], *patch["containers"]]
        assert [one["name"] for one in executor] == ["init", "wait"]
        pods += [(each["securityContext"], one["securityContext"]) for one in executor]
    for pod, container in pods:
        assert pod["runAsNonRoot"] is True
        assert pod["runAsUser"] != 0
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["allowPrivilegeEscalation"] is False
        assert container["capabilities"] == {"drop": ["ALL"]}
    assert volume_kinds(document, gang) <= {"emptyDir", "persistentVolumeClaim"}


def volume_kinds(document: dict[str, Any], gang: dict[str, Any]) -> set[str]:
    volumes = [volume for each in [*containers(document), gang] for volume in each["volumes"]]
    return {kind for volume in volumes for kind in volume if kind != "name"}


@pytest.mark.parametrize(
    ("cache", "kinds", "marked"),
    [
        ({"claim": "c"}, {"emptyDir", "persistentVolumeClaim"}, False),
        ({"ephemeral": "1Ti"}, {"emptyDir", "persistentVolumeClaim", "ephemeral"}, False),
        ({"host_path": "/mnt/nvme"}, {"emptyDir", "persistentVolumeClaim", "hostPath"}, True),
    ],
)
def test_a_cache_on_the_nodes_own_folders_is_marked(
    cache: dict[str, Any],
    kinds: set[str],
    marked: bool,
    full: dict[str, Any],
    document: Callable[..., dict[str, Any]],
    gang_of: Callable[..., dict[str, Any]],
) -> None:
    full["dataset"]["cache"] = cache
    compiled = document(full)
    template = gang_of(compiled)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert volume_kinds(compiled, template["spec"]) == kinds
    assert template["metadata"]["labels"].get("argosy.dev/profile") == ("host-path" if marked else None)
    assert {"name": "cache", "mountPath": "/argosy/cache"} in template["spec"]["containers"][0]["volumeMounts"]
    assert any("hostPath" in warning for warning in warnings(TrainingRun(**full))) is marked


def test_a_shared_cache_of_its_own_is_mounted_where_it_is_filled_and_read(
    full: dict[str, Any], document: Callable[..., dict[str, Any]], gang_of: Callable[..., dict[str, Any]]
) -> None:
    full |= {"storage": {"uri": "s3://b/p"}}
    full["dataset"] = {
        "uri": "s3://b/d",
        "staging": "shared",
        "cache": {"claim": "lustre", "size_gib": 7.5, "verify": "full", "read_only": True},
    }
    compiled = document(full)
    pods = {each["name"]: each for each in containers(compiled)}
    gang = gang_of(compiled)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    volume = {"name": "cache", "persistentVolumeClaim": {"claimName": "lustre", "readOnly": True}}
    mount = {"name": "cache", "mountPath": "/argosy/cache", "readOnly": True}
    for pod, container in ((pods["stage"], pods["stage"]["container"]), (gang, gang["containers"][0])):
        assert volume in pod["volumes"]
        assert mount in container["volumeMounts"]
        assert {"--cache-gib=7.5", "--cache-verify=full", "--cache-access=read-only"} <= set(container["args"])
    assert "--path=/argosy/cache" in pods["stage"]["container"]["args"]
    assert "--cache-path=/argosy/cache" in gang["containers"][0]["args"]
    assert "volumes" not in pods["train"] or volume not in pods["train"]["volumes"]


@pytest.mark.parametrize(
    ("cache", "held_out", "cached"),
    [
        ({"claim": "c", "verify": "full"}, "s3://b/held", True),
        ({"claim": "c"}, "", False),
        ({"claim": "c", "read_only": True}, "s3://b/held", False),
        ({"ephemeral": "1Ti"}, "s3://b/held", False),
        ({"host_path": "/mnt/nvme"}, "s3://b/held", False),
    ],
)
def test_held_out_data_are_kept_on_a_claim_that_may_be_written(
    cache: dict[str, Any], held_out: str, cached: bool, full: dict[str, Any], document: Callable[..., dict[str, Any]]
) -> None:
    full["dataset"]["cache"] = cache
    full["evaluation"]["dataset_uri"] = held_out
    pod = next(each for each in containers(document(full)) if each["name"] == "evaluate")
    args = [each for each in pod["container"]["args"] if each.startswith("--cache-")]
    assert args == (["--cache-path=/argosy/cache", "--cache-verify=full"] if cached else [])
    mounted = {"name": "cache", "mountPath": "/argosy/cache"} in pod["container"]["volumeMounts"]
    volume = {"name": "cache", "persistentVolumeClaim": {"claimName": "c"}}
    assert (mounted, volume in pod["volumes"]) == (cached, cached)


def test_slow_nodes_have_longer_to_come_for_staged_data(
    full: dict[str, Any], document: Callable[..., dict[str, Any]]
) -> None:
    full["dataset"]["staging"] = "shared"
    for seconds, said in ((600, []), (700, ["--book-seconds=3700"]), (10**6, ["--book-seconds=86400"])):
        full["deadlines"] = {"check_in_seconds": seconds}
        pod = next(each for each in containers(document(full)) if each["name"] == "stage")
        assert [each for each in pod["container"]["args"] if each.startswith("--book")] == said


@golden
def test_retries_are_explicit(path: Path) -> None:
    for template in containers(load(path)):
        strategy = template["retryStrategy"]
        assert isinstance(strategy["limit"], int)
        assert strategy["retryPolicy"] == "Always"
        assert "cap" in strategy["backoff"]
        assert "maxDuration" not in strategy["backoff"]
        assert 'lastRetry.status == "Error"' in strategy["expression"]
        never = ("70", "73", "77", "78")
        codes = re.findall(r"\d+", strategy["expression"])
        assert not set(codes) & set(never), f"{template['name']} would retry what must not be retried"


@golden
@pytest.mark.parametrize(
    ("code", "words", "again"),
    [
        (255, "", False),
        (64, ": failed to start command: context canceled", True),  # told to stop before it started the step
        (64, ': failed to find name in PATH: exec: "argosy": executable file not found in $PATH', False),
        (2, "", True),  # and before it listened to signals: Go's runtime, as process 1
        (2, ': {"exit_code":2,"message":"wrong"}', False),
        (1, "", False),
        (143, "", True),
    ],
)
def test_a_pod_taken_away_as_argos_executor_starts_is_tried_again(
    path: Path, code: int, words: str, again: bool
) -> None:
    last = {"status": "Failed", "exitCode": str(code), "message": f"main: Error (exit code {code}){words}"}
    for template in containers(load(path)):
        expression = template["retryStrategy"]["expression"]
        assert evaluate_boolean(expression, {"retries": "0", "lastRetry": {**last, "duration": "1"}}) is again
        # A node that was without power: containerd knows no more of what ran there.
        lost = {**last, "exitCode": "255", "message": "main: Unknown (exit code 255)", "duration": "1"}
        assert evaluate_boolean(expression, {"retries": "0", "lastRetry": lost})


@golden
def test_commands_are_explicit_argv(path: Path) -> None:
    for template in containers(load(path)):
        container = template["container"]
        assert container["command"][:2] == ["python", "-m"]
        assert container["command"][2] == f"argosy.steps.{template['name']}"
        assert all(text.startswith("--") and "=" in text for text in container["args"])


@golden
def test_the_gang_has_one_owner_of_restarts(path: Path, gang_of: Callable[..., dict[str, Any]]) -> None:
    spec = gang_of(load(path))["spec"]
    (node,) = spec["replicatedJobs"]
    job = node["template"]["spec"]
    pod = job["template"]["spec"]
    assert spec["failurePolicy"] == {"maxRestarts": 0}
    # Other pods come in place of lost ones where one stands by; whether they get a rank is the supervisor's affair.
    spares = int(gang_of(load(path))["metadata"].get("annotations", {}).get(SPARES_ANNOTATION, 0))
    assert job["backoffLimit"] == (REPLACED_PODS if spares else 0)
    assert job["completions"] == job["parallelism"]
    assert pod["restartPolicy"] == "Never"
    assert pod["automountServiceAccountToken"] is False
    assert [container["name"] for container in pod["containers"]] == ["main"]
    mounted = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert {"/dev/shm", "/argosy/data", "/argosy/workspace", "/argosy/tmp"} <= mounted


@golden
def test_the_manifest_is_a_readable_block(path: Path) -> None:
    text = path.read_text()
    assert re.search(r"raw:\n +data: \|\n +apiVersion: jobset", text)
    assert text.isascii()


@golden
def test_volumes_are_declared_where_they_are_mounted(path: Path) -> None:
    for template in containers(load(path)):
        declared = {volume["name"] for volume in template["volumes"]}
        mounts = template["container"]["volumeMounts"]
        assert {mount["name"] for mount in mounts} <= declared
        # Outputs and the manifest on a shared claim would be written by two runs at once.
        assert "/argosy/outputs" in {mount["mountPath"] for mount in mounts}


@golden
def test_references_resolve(path: Path) -> None:
    spec = load(path)["spec"]
    templates = {each["name"]: each for each in spec["templates"]}
    assert len(templates) == len(spec["templates"])
    assert spec["onExit"] in templates
    parameters = {each["name"] for each in spec["arguments"]["parameters"]}
    outputs = {
        f"{name}.{each['name']}"
        for name, one in templates.items()
        for each in one.get("outputs", {}).get("parameters", [])
    }
    before: set[str] = set()
    for task in templates[spec["entrypoint"]]["dag"]["tasks"]:
        inputs = {each["name"]: each for each in templates[task["template"]]["inputs"]["parameters"]}
        given_names = {each["name"] for each in task["arguments"]["parameters"]}
        assert given_names <= set(inputs)
        assert all("default" in inputs[name] for name in set(inputs) - given_names)
        text = repr(task)
        assert set(re.findall(r"workflow\.parameters\.([a-z-]+)", text)) <= parameters
        used = {".".join(pair) for pair in re.findall(r"tasks\.([a-z]+)\.outputs\.parameters\.([a-z-]+)", text)}
        assert used <= outputs
        assert {each.split(".")[0] for each in used} <= before
        before.add(task["name"])
    for template in templates.values():
        used_inputs = {text.split("['")[1].split("']")[0] for _, text in strings(template) if "inputs." in text}
        assert used_inputs or "container" not in template
        assert used_inputs <= {each["name"] for each in template.get("inputs", {}).get("parameters", [])}


def test_skips_and_successes() -> None:
    document = load(GOLDENS[0])
    main = next(each for each in document["spec"]["templates"] if each["name"] == "main")
    tasks = main["dag"]["tasks"]
    assert [task["name"] for task in tasks] == ["snapshot", "admit", "stage", "train", "evaluate", "gate", "promote"]
    # A skipped task satisfies a bare name: only .Succeeded stops the chain.
    assert all(task["depends"].endswith(".Succeeded") for task in tasks[1:])
    assert {task["name"] for task in tasks if "when" in task} == {"stage", "promote"}


def test_without_dataset_and_evaluation(full: dict[str, Any], document: Callable[..., dict[str, Any]]) -> None:
    for table in ("dataset", "evaluation", "promotion"):
        del full[table]
    spec = document(full)["spec"]
    main = next(each for each in spec["templates"] if each["name"] == "main")
    assert [task["name"] for task in main["dag"]["tasks"]] == ["admit", "train"]
    assert "when" in main["dag"]["tasks"][1]
    assert "dataset-uri" not in {each["name"] for each in spec["arguments"]["parameters"]}


def test_no_claim_for_cloud_stores(full: dict[str, Any], compiled: Callable[..., str]) -> None:
    full |= {"storage": {"uri": "s3://b/p"}, "dataset": {"uri": "s3://b/d"}}
    assert "persistentVolumeClaim" not in compiled(full)
    assert "argosy.dev/claim" not in compiled(full)
    full["dataset"]["staging"] = "shared"
    assert "persistentVolumeClaim" in compiled(full)


def test_equal_runs_give_equal_bytes(full: dict[str, Any], compiled: Callable[..., str]) -> None:
    assert compiled(full) == compiled(dict(reversed(full.items())))


@pytest.mark.usefixtures("hera_untouched")
def test_hera_keeps_its_globals_and_agrees(full: dict[str, Any]) -> None:
    run = TrainingRun(**full)
    code = CodeArchive(b"", "c" * 64, ())
    ours = unfactored(loaded(compile_run(run, code=code)))
    heras = loaded(build_workflow(run, code_digest=code.digest).to_yaml())
    assert in_one_order(ours) == in_one_order(heras)


def test_code_must_be_packed_or_absent(full: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"code = '\.': the folder was not packed; pass"):
        compile_run(TrainingRun(**full))
    with pytest.raises(InputError, match=r"an archive was given too"):
        compile_run(TrainingRun(**full, code=""), code=CodeArchive(b"", "c" * 64, ()))


NASTY = st.text(max_size=30) | st.text(
    alphabet="{}$()'\"|>:#&*!%@`\\\n\r\t -=,[]?~" + string.digits + "eExoynYN", max_size=20
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(argument=NASTY, value=NASTY)
@example(argument="{{workflow.uid}}", value="x")
@example(argument="{{=sprig.env('X')}}", value="x")
@example(argument="x", value="$(HOME)")
@example(argument="- a: b\n  - c", value="|\n  block: 'x'\n")
@example(argument="---", value="...")
@example(argument="1e3", value="0o17")
@example(argument="y", value="n")
@example(argument="\ud800", value="\0")
@example(argument="\x85\u2028\ufeff", value=" \n lead\n\n\n")
def test_a_nasty_string_arrives_as_written_or_is_refused(
    argument: str, value: str, gang_of: Callable[..., dict[str, Any]]
) -> None:
    fields: dict[str, Any] = {"name": "n", "script": "t.py", "code": ""}
    quiet = loaded(compile_run(TrainingRun(**fields, args=["plain"], env={"V": "plain"})))
    run = accepted(**fields, args=[argument], env={"V": value})
    if run is not None:
        assert_arrived(run, argument, value, quiet, gang_of)


def accepted(**fields: Any) -> TrainingRun | None:
    try:
        return TrainingRun(**fields)
    except InputError:
        return None


def assert_arrived(
    run: TrainingRun, argument: str, value: str, quiet: dict[str, Any], gang_of: Callable[..., dict[str, Any]]
) -> None:
    document = loaded(compile_run(run))
    container = gang_of(document)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    assert f"--arg={argument}" in container["args"]
    assert {"name": "V", "value": value} in container["env"]
    assert shape(document) == shape(quiet)
    assert placeholders(document) == placeholders(quiet)


def shape(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: shape(value) for key, value in node.items()}
    return [shape(each) for each in node] if isinstance(node, list) else type(node)


def placeholders(document: dict[str, Any]) -> list[str]:
    return sorted(found for _, text in strings(document) for found in re.findall(r"\{\{.*?\}\}", text, re.S))


def test_secrets_to_pull_with_are_every_pods() -> None:
    """The gang alone had them: an evaluation of the same image could not begin when the training was done."""
    run = TrainingRun.model_validate(
        {
            "name": "r",
            "module": "m",
            "code": "",
            "storage": {"uri": "s3://b/p"},
            "gang": {"pod": {"image_pull_secrets": ["regcred"]}},
        }
    )
    document = loaded(compile_run(run).decode())
    assert document["spec"]["imagePullSecrets"] == [{"name": "regcred"}]
