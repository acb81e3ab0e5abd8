"""GANG: keys that somebody reads, groups that fit their pods, placements that can be met."""

from __future__ import annotations

import pytest

from tests.lint.manifests import GROUP, JOB, JOBSET, PYTORCH, VOLCANO, found, rules

LABELS = "labels: {app: train}"
MEMBER = "labels: {app: train, scheduling.x-k8s.io/pod-group: train}"
SCHEDULER = "      schedulerName: coscheduling\n      subdomain: train"
MEMBERS = GROUP + JOB.replace(LABELS, MEMBER).replace("      subdomain: train", SCHEDULER)
GPUS = "          resources: {limits: {nvidia.com/gpu: 8}}\n"


@pytest.mark.parametrize("manifest", [JOB, JOBSET, PYTORCH, VOLCANO, MEMBERS])
def test_right_ones(manifest: str) -> None:
    assert rules(manifest, "GANG") == set()


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("labels: {scheduling.k8s.io/pod-group: train}", {"GANG001"}),
        ("labels: {scheduling.x-k8s.io/podgroup: train}", {"GANG001"}),
        ("labels: {scheduling.k8s.io/group-name: train}", {"GANG002"}),
        ("annotations: {scheduling.x-k8s.io/pod-group: train}", {"GANG002"}),
        ("annotations: {scheduling.k8s.io/group-name: train}", set()),
        ("labels: {kueue.x-k8s.io/queue-name: gpu}", {"GANG003"}),
        ("labels: {team.example/pod-group: train}", set()),
    ],
)
def test_a_key_of_the_pods(metadata: str, expected: set[str]) -> None:
    assert rules(JOB.replace(LABELS, metadata), "GANG") == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("labels: {kueue.x-k8s.io/queue-name: gpu}", set()),
        ("annotations: {kueue.x-k8s.io/queue-name: gpu}", {"GANG002"}),
        ("labels: {kueue.x-k8s.io/queue: gpu}", {"GANG001"}),
        ("annotations: {kueue.x-k8s.io/podset-required-topology: rack}", {"GANG003"}),
    ],
)
def test_a_key_of_the_object(metadata: str, expected: set[str]) -> None:
    assert rules(JOB.replace("  name: train\nspec", f"  name: train\n  {metadata}\nspec"), "GANG") == expected


@pytest.mark.parametrize(
    ("text", "instead", "expected"),
    [
        ("minMember: 2", "minMember: 3", {"GANG006"}),
        ("minMember: 2", "minMember: 1", set()),
        ("minMember: 2", 'minMember: "{{nodes}}"', set()),
        ("      schedulerName: coscheduling\n", "", set()),
        ("metadata: {name: train}", "metadata: {name: train, namespace: other}", set()),  # the Job names none
        (MEMBER, LABELS, set()),
    ],
)
def test_a_group_and_its_pods(text: str, instead: str, expected: set[str]) -> None:
    assert text in MEMBERS
    assert rules(MEMBERS.replace(text, instead), "GANG") == expected


def test_a_native_group() -> None:
    group = "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: train}\n"
    group += "spec: {schedulingPolicy: {gang: {minCount: 2}}}\n---\n"
    member = JOB.replace("      subdomain", "      schedulingGroup: {podGroupName: train}\n      subdomain")
    assert rules(group + member, "GANG", "API") == set()
    assert rules(group.replace("minCount: 2", "minCount: 4") + member, "GANG") == {"GANG006"}


@pytest.mark.parametrize(
    ("text", "instead", "expected"),
    [
        ("minAvailable: 3", "minAvailable: 4", {"GANG007"}),
        ("minAvailable: 3", "minAvailable: 2", {"GANG007"}),
        ("  minAvailable: 3\n", "", set()),
        ("  name: train\nspec", "  name: train\n  labels: {kueue.x-k8s.io/queue-name: gpu}\nspec", set()),
    ],
)
def test_a_volcano_job(text: str, instead: str, expected: set[str]) -> None:
    assert text in VOLCANO
    assert rules(VOLCANO.replace(text, instead), "GANG") == expected


def test_gpus_of_several_pods_want_all_or_nothing() -> None:
    manifest = JOB + GPUS
    assert ("GANG012", 4) in found(manifest, "GANG")
    queued = manifest.replace("  name: train\nspec", "  name: train\n  labels: {kueue.x-k8s.io/queue-name: g}\nspec")
    for good in (
        queued,
        manifest.replace("      subdomain", "      schedulerName: kai-scheduler\n      subdomain"),
        manifest.replace("      subdomain", "      schedulingGroup: {podGroupName: train}\n      subdomain"),
        manifest.replace("backoffLimit: 0", "backoffLimit: 0\n  scheduling: {schedulingPolicy: {gang: {}}}"),
        manifest.replace("completions: 2\n  parallelism: 2", "completions: 1\n  parallelism: 1"),
    ):
        assert "GANG012" not in rules(good, "GANG")


@pytest.mark.parametrize(
    ("text", "instead", "line", "level"),
    [
        ("parallelism: 2", "parallelism: 1", 8, "error"),
        ("completions: 2", "completions: 4", 8, "warning"),
        ("  completions: 2\n", "", 5, "error"),
        ("  parallelism: 2\n", "", 5, "error"),
    ],
)
def test_ranks_run_side_by_side(text: str, instead: str, line: int, level: str) -> None:
    from argosy.workflows.lint.linter import lint
    from argosy.workflows.manifests.reading import read_text

    findings = lint([read_text(JOB.replace(text, instead).encode(), "m.yaml")])
    assert (line, level) in {(each.line, each.level.word) for each in findings if each.rule == "GANG019"}


def test_independent_pieces_of_work_need_not_run_side_by_side() -> None:
    work = JOB.replace("completions: 2", "completions: 100").replace(
        "[torchrun, --nnodes=2, --node-rank=$(JOB_COMPLETION_INDEX), --master-addr=train-0.train, train.py]",
        "[python, tokenize.py]",
    )
    assert rules(work.replace("backoffLimit: 0", "backoffLimit: 9"), "GANG", "RESTART") == set()


AFFINITY = """\
      affinity:
        {kind}:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: {key}
              labelSelector: {{matchLabels: {{app: {app}}}}}
      subdomain"""


@pytest.mark.parametrize(
    ("kind", "key", "app", "expected"),
    [
        ("podAntiAffinity", "kubernetes.io/hostname", "train", set()),
        ("podAntiAffinity", "topology.kubernetes.io/zone", "other", set()),
        ("podAffinity", "topology.kubernetes.io/zone", "train", set()),
        ("podAffinity", "topology.kubernetes.io/zone", "other", set()),
        ("podAffinity", "kubernetes.io/hostname", "train", set()),
    ],
)
def test_affinities(kind: str, key: str, app: str, expected: set[str]) -> None:
    manifest = JOB.replace("      subdomain", AFFINITY.format(kind=kind, key=key, app=app))
    manifest = manifest.replace("completions: 2", "completions: 8").replace("parallelism: 2", "parallelism: 8")
    assert rules(manifest, "GANG") == expected


def test_a_label_of_a_controller_selects_its_pods() -> None:
    by_job = AFFINITY.format(kind="podAffinity", key="topology.kubernetes.io/zone", app="x")
    by_job = by_job.replace("app: x", "batch.kubernetes.io/job-name: train")
    assert rules(JOB.replace("      subdomain", by_job), "GANG") == set()
