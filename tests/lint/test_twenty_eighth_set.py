"""What the twenty-eighth set of public manifests showed to be wrong or noise, and what no manifest is, in small."""

from __future__ import annotations

import click
import pytest

from argosy.workflows.cli.lint.text import as_text
from argosy.workflows.lint.finding import Level
from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text
from tests.lint.test_missed import HEAD, fill
from tests.lint.test_twenty_fifth_set import JOB, MPI, QUEUES

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n    - name: c\n      image: r/x:1\n"
GPUS = "      command: [@]\n      resources: {limits: {nvidia.com/gpu: 8}}\n"
RAYJOB = "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: r}\nspec:\n  entrypoint: a\n  rayClusterSpec: {}\n@"
WORKFLOW = fill(HEAD, "argoproj.io/v1alpha1", "Workflow") + "  entrypoint: t\n  templates:\n    - name: t\n"
PLUGIN = WORKFLOW + (
    "      plugin:\n        ray:\n          apiVersion: ray.io/v1\n          kind: RayJob\n"
    "          spec: {entrypoint: a, shutdownAfterJobFinishes: true}\n"
)
RUNTIME = fill(HEAD, "trainer.kubeflow.org/v2alpha1", "ClusterTrainingRuntime") + (
    "  mlPolicy: {numNodes: 2, torch: {numProcPerNode: auto}}\n"
    "  template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: "
    "[{name: node, image: 'r/x:1', command: [torchrun a.py]}]}}}}}]}}\n"
)


def said(text: str, name: str = "manifest.yaml", least: Level = Level.WARNING) -> list[tuple[str, str]]:
    found = lint([read_text(text.encode(), name)])
    return [(each.rule, each.level.word) for each in found if each.level >= least]


@pytest.mark.parametrize("word", ["<name>", "{name}", "__NAME__", "@name@", "[[ name ]]", "FIX_ME", "my-train-image"])
def test_what_is_still_to_be_written_is_not_judged(word: str) -> None:
    assert said(POD.replace("name: p", f"name: '{word}'")) == []
    assert said(POD.replace("name: c", f"name: '{word}'")) == []


@pytest.mark.parametrize(("folder", "level"), [("k8s", "error"), ("testdata", "note"), ("src/test/resources", "note")])
def test_what_a_tools_tests_read_is_wrong_on_purpose(folder: str, level: str) -> None:
    assert ("API010", level) in said(POD.replace("name: c", "name: C"), f"a/{folder}/pod.yaml", Level.NOTE)
    assert said("kind: Pod\na: [", f"{folder}/pod.yaml", Level.NOTE) == [("YAML001", level)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: CronJob\nschedule: '*/5 * * * *'\n", []),  # a chart's values
        ("kind: CronJob\nmetadata: {name: a}\nspec: {}\n", [("API019", "error")]),
        (QUEUES.replace("v1beta1", "v1beta2").replace("{name: q}\n", "{name: q}\nspec: {}\nspec: {a: b}\n"), []),
        (fill(RAYJOB, ""), [("RESTART033", "warning")]),
        (fill(RAYJOB, "  submissionMode: InteractiveMode\n"), []),
        (PLUGIN, [("RAY003", "error")]),
        (WORKFLOW + "      steps: [[{name: a, template: b}]]\n", [("ARGO002", "error")]),
        (WORKFLOW + "      steps: [[{name: a, template: b}, {name: b, template: c}]]\n", [("ARGO002", "warning")]),
        (RUNTIME, [("API001", "error"), ("ARGV001", "error")]),
        (
            fill(MPI, ", -N, '1'").replace("{replicas: 2, template: {", "{replicas: 2, template: {labels: {}, "),
            [("API003", "warning")],
        ),
    ],
)
def test_what_is_said_by_default(text: str, expected: list[tuple[str, str]]) -> None:
    assert [each for each in said(text) if each[0] not in ("API002", "API005")] == expected


def test_objects_of_json_stand_one_after_the_other() -> None:
    pod = '{\n"apiVersion": "v1",\n"kind": "Pod",\n"metadata": {"name": "p"},\n'
    pod += '"spec": {"containers": [{"name": "@"}]}\n}\n'
    found = lint([read_text((fill(pod, "c") + fill(pod, "C") + "null\n").encode(), "pods.json")])
    assert [(each.rule, each.line) for each in found if each.level is Level.ERROR] == [("API010", 11)]


def test_fields_of_the_metadata_that_stand_beside_it_are_one_finding() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata:\nname: p\nlabels: {a: b}\n" + POD.partition("{name: p}\n")[2]
    found = [each.message for each in lint([read_text(text.encode(), "p.yaml")]) if each.rule == "API003"]
    assert len(found) == 1
    assert found[0].endswith("(also on line 5)")


@pytest.mark.parametrize(
    ("command", "told"), [("sleep, infinity", True), ("sleep, '60'", False), ("python, a.py", False)]
)
def test_a_pod_that_only_keeps_its_gpus_is_a_note(command: str, told: bool) -> None:
    assert (("ARGV043", "note") in said(POD + fill(GPUS, command), least=Level.NOTE)) == told


def test_what_is_said_of_many_files_is_said_once() -> None:
    files = [
        read_text(fill(JOB, "A", "", "x").replace("restartPolicy: Never, ", "").encode(), f"{n}.yaml")
        for n in range(11)
    ]
    findings = [each for each in lint(files) if each.rule == "RESTART005"]
    (paragraph,) = as_text(findings, files)
    assert "--> 0.yaml:5" in click.unstyle(paragraph)
    assert paragraph.endswith("the same in " + ", ".join(f"{n}.yaml:5" for n in range(1, 9)) + " and 2 more\n")


SELECTOR = "  selector: @\n  completionMode: Indexed\n  parallelism: @\n  completions: @\n"
MPIRUN = "command: [mpirun, -n, '6'@, python, train.py], resources: {limits: {nvidia.com/gpu: 1}}"
LOOKED_AT = "      command: [bash, -c, 'set -e; @ | @']\n      resources: {limits: {nvidia.com/gpu: 1}}\n"


@pytest.mark.parametrize(
    ("selector", "refused"),
    [("{}", False), ("{matchLabels: }", False), ("{matchLabels: {}}", False), ("{matchLabels: {a: b}}", True)],
)
def test_an_empty_selector_of_a_job_is_filled_in(selector: str, refused: bool) -> None:
    text = fill(JOB, "a", fill(SELECTOR, selector, "1", "1"), "x")
    assert (("API021", "error") in said(text)) == refused


@pytest.mark.parametrize(("hosts", "gang"), [("", False), (", --hostfile, /etc/hosts", True)])
def test_mpirun_without_hosts_stays_in_its_pod(hosts: str, gang: bool) -> None:
    text = fill(JOB, "a", fill(SELECTOR, "{}", "4", "4"), "x").replace(
        "image: 'r/x:1'", f"image: 'r/x:1', {fill(MPIRUN, hosts)}"
    )
    assert ("RESTART001" in {rule for rule, _ in said(text)}) == gang


@pytest.mark.parametrize(
    ("command", "follower", "told"),
    [
        ("torchrun train.py", "tee a", True),
        ("python count.py", "python -c 1", False),
        ("python train.py", "tee a", True),
        ("mpirun -np 2 all_reduce_perf -b 8", "tee a", False),
        ("mpirun -np 2 a.out", "tee a", True),
    ],
)
def test_what_another_program_reads_is_no_log(command: str, follower: str, told: bool) -> None:
    assert ("ARGV040" in {rule for rule, _ in said(POD + fill(LOOKED_AT, command, follower))}) == told


@pytest.mark.parametrize("text", ["spec:\n.....\n", "...\nstatus: {}\n", "[NOTE]\n====\na: b\nc\n"])
def test_a_sketch_of_a_page_is_no_error(text: str) -> None:
    head = "" if text.startswith("[") else "apiVersion: v1\nkind: Pod\n"
    assert said(head + text if head else text + "apiVersion: v1\nkind: Pod\n")[:1] == [("YAML001", "warning")]


def test_a_no_break_space_is_named() -> None:
    found = lint([read_text(POD.replace("      image", " \u00a0 \u00a0 image").encode(), "p.yaml")])
    assert "is not YAML: a no-break space where YAML wants spaces" in {each.message for each in found}
