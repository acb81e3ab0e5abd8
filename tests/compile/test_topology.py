"""Racks and spot nodes in what each placement understands, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from argosy.steps.contract.errors import InputError
from argosy.steps.gang.manifest import check_manifest, pod_spec
from argosy.steps.gang.spot import on_demand, read_spot
from argosy.workflows.gang.documents import gang_yaml
from argosy.workflows.spec.placement import RUNTIMES
from argosy.workflows.spec.run import TrainingRun

RACK = "example.com/rack"
SPOT = {
    "label": "cloud.google.com/gke-spot",
    "tolerations": [{"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}],
}
HOW = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")


def documents(**gang: Any) -> list[dict[str, Any]]:
    run = TrainingRun(name="llm", script="train.py", code="", gang={"nnodes": 2, **gang})
    return list(yaml.safe_load_all(gang_yaml(run)))


def refused(**gang: Any) -> str:
    with pytest.raises(InputError) as caught:
        documents(**gang)
    return str(caught.value)


@pytest.mark.parametrize("runtime", [name for name, placements in RUNTIMES.items() if "kueue" in placements])
def test_kueue_is_told_by_annotations_of_the_pods(runtime: str) -> None:
    made = documents(runtime=runtime, placement="kueue", queue="q", topology={"required": RACK})
    manifest = check_manifest(made, "x")
    for template in manifest.runtime.templates(manifest.runtime.pods_in(manifest.documents)):
        assert template["metadata"]["annotations"] == {"kueue.x-k8s.io/podset-required-topology": RACK}
        assert "affinity" not in template["spec"]


def test_a_pod_group_is_told_by_its_constraint_and_what_is_preferred_by_the_pods() -> None:
    made = documents(placement="native", topology={"required": RACK, "preferred": "example.com/block"})
    assert made[0]["spec"]["schedulingConstraints"] == {"topology": [{"key": RACK}]}
    attraction = pod_spec(made[-1])["affinity"]["podAffinity"]
    assert [*attraction] == [HOW[1]]


def test_without_a_placement_pods_attract_those_of_their_own_gang_only() -> None:
    made = documents(
        topology={"required": RACK}, pod={"affinity": {"nodeAffinity": {HOW[0]: {"nodeSelectorTerms": []}}}}
    )
    affinity = pod_spec(made[-1])["affinity"]
    (term,) = affinity["podAffinity"][HOW[0]]
    assert (term["topologyKey"], term["matchLabelKeys"]) == (RACK, ["argosy.dev/gang"])
    assert term["labelSelector"] == {"matchLabels": {"argosy.dev/run": "llm"}}  # no key may stand in both
    assert "nodeAffinity" in affinity


def test_what_cannot_be_is_refused_with_the_reason() -> None:
    both = {"required": RACK, "preferred": "b"}
    assert "Kueue takes one level" in refused(placement="kueue", queue="q", topology=both)
    assert "HyperNodes" in refused(runtime="volcano", placement="volcano", topology={"required": RACK})
    assert "stands in node_selector too" in refused(spot=SPOT, node_selector={SPOT["label"]: "true"})
    assert "gang.spot.label" in refused(spot={})


@pytest.mark.parametrize("runtime", [name for name, placements in RUNTIMES.items() if placements])
def test_a_gang_that_leaves_spot_nodes_is_neither_drawn_to_them_nor_let_onto_them(runtime: str) -> None:
    made = documents(
        runtime=runtime,
        placement=RUNTIMES[runtime][0],
        spot=SPOT,
        node_selector={"pool": "a"},
        tolerations=[{"key": "x"}],
    )
    manifest = check_manifest(made, "x")
    before = json.dumps(made)
    spec = pod_spec(manifest.runtime.pods_in(manifest.documents))
    taints = [each.get("key") for each in spec["tolerations"]]
    assert spec["nodeSelector"] == {"pool": "a", SPOT["label"]: "true"}
    assert SPOT["label"] in taints
    spot = read_spot(json.dumps({"value": "true", "preemptions": 3, **SPOT}))
    assert spot is not None
    left = on_demand(manifest, spot)
    assert json.dumps(list(manifest.documents)) == before
    for template in left.runtime.templates(left.runtime.pods_in(left.documents)):
        pod = template["spec"]
        assert pod["nodeSelector"] == {"pool": "a"}
        assert [each.get("key") for each in pod["tolerations"]] == [key for key in taints if key != SPOT["label"]]
        (alternative,) = pod["affinity"]["nodeAffinity"][HOW[0]]["nodeSelectorTerms"]
        assert alternative["matchExpressions"] == [{"key": SPOT["label"], "operator": "NotIn", "values": ["true"]}]


@pytest.mark.parametrize(
    "raw", ["{", "[]", '{"label": "a"}', '{"label":"a","value":"b","tolerations":[],"preemptions":"x"}']
)
def test_a_spot_argument_that_nobody_compiled_is_refused(raw: str) -> None:
    with pytest.raises(InputError, match="compile the run again"):
        read_spot(raw)
