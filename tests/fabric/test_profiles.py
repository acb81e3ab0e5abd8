"""Every fact of ours has a reason and a dated source; pods stay restricted unless the profile says why not."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hera.workflows import models
from pydantic import BaseModel

from argosy.workflows.fabric.catalogue import known_profile, profile_names
from argosy.workflows.fabric.profile import Note, Parameter
from argosy.workflows.spec.explain import explain_field
from argosy.workflows.spec.run import warnings
from argosy.workflows.spec.texts import check_literal
from tests.fabric.cases import GANGS, case, run_on, template

FREE = {"emptyDir", "persistentVolumeClaim", "configMap", "ephemeral"}
PRIVILEGED = {
    "ib-sriov-root", "gcp-a3-high", "gcp-a3-mega", "gcp-a3u-a4", "gcp-a3u-a4-dra", "oci-roce-host", "oci-roce-vf",
}  # fmt: skip


@pytest.mark.parametrize("name", profile_names())
def test_every_fact_has_its_reason_and_a_dated_source(name: str) -> None:
    profile = known_profile(name)
    assert profile.name == name
    assert len(profile.about) > 20
    assert profile.proven == "not run on such hardware here"
    for fact in profile.facts():
        assert fact.source in profile.sources, fact
        assert fact.why or isinstance(fact, Note | Parameter), fact
    for source in profile.sources.values():
        assert source.date >= datetime.date(2026, 11, 1)
    unused = set(profile.sources) - {fact.source for fact in profile.facts()}
    assert not unused


@pytest.mark.parametrize("name", profile_names())
def test_the_condition_of_a_fact_names_a_parameter_and_a_value_it_can_have(name: str) -> None:
    profile = known_profile(name)
    parameters = {each.name: each for each in profile.parameters}
    for fact in profile.facts():
        for key, values in fact.when.items():
            choices = parameters[key].choices
            assert not choices or set(values) <= {*choices, "", "*"}, fact


@pytest.mark.parametrize("name", profile_names())
def test_all_of_a_profile_can_be_asked_for(name: str) -> None:
    text = explain_field(f"fabric.{name}")
    profile = known_profile(name)
    assert profile.proven in text
    for setting in profile.env:
        assert f"    {setting.name} = " in text
    for source in profile.sources.values():
        assert f"{source.url} (read {source.date})" in text
    for listing in (explain_field("gang.fabric"), explain_field("fabric")):
        assert f"  {name} " in listing
        assert profile.about in listing


@pytest.mark.parametrize("name", GANGS)
def test_no_text_of_a_profile_is_rewritten_on_its_way(name: str) -> None:
    for _place, text in case(name).fabric.texts():
        assert check_literal(text) == text


def offences(pod: dict[str, Any]) -> list[str]:
    """What Pod Security "restricted" says against a pod (kubernetes.io, pod-security-standards)."""
    found = [field for field in ("hostNetwork", "hostPID", "hostIPC") if pod.get(field)]
    found += [kind for volume in pod["volumes"] for kind in volume if kind != "name" and kind not in FREE]
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        security = {**pod["securityContext"], **container.get("securityContext", {})}
        capabilities = security.get("capabilities", {})
        found += ["privileged"] if security.get("privileged") else []
        found += ["root"] if security.get("runAsUser") == 0 or not security.get("runAsNonRoot") else []
        found += ["escalation"] if security.get("allowPrivilegeEscalation") is not False else []
        found += ["drop"] if "ALL" not in capabilities.get("drop", []) else []
        found += [name for name in capabilities.get("add", []) if name != "NET_BIND_SERVICE"]
    return found


@pytest.mark.parametrize("name", GANGS)
def test_a_pod_is_restricted_or_marked_and_said_to_be_not(name: str) -> None:
    run = case(name)
    made = template(run)
    marked = made["metadata"]["labels"].get("argosy.dev/profile") == "privileged"
    said = [text for text in warnings(run) if "Pod Security privileged" in text]
    assert bool(offences(made["spec"])) == marked == bool(said) == (name in PRIVILEGED)
    if said:
        for privilege in run.fabric.privileges:
            assert privilege in said[0]


@pytest.mark.parametrize("name", GANGS)
def test_what_was_not_run_says_so(name: str) -> None:
    said = [text for text in warnings(case(name)) if "not run on such hardware here" in text]
    assert len(said) == (0 if name == "single-node" else 1)


@pytest.mark.parametrize("name", GANGS)
def test_ranks_meet_although_a_service_mesh_is_there(name: str) -> None:
    labels = template(case(name))["metadata"]["labels"]
    assert labels.get("sidecar.istio.io/inject") == (None if name == "single-node" else "false")


@pytest.mark.parametrize("name", GANGS)
def test_mounts_find_their_volumes_and_no_path_is_taken_twice(name: str) -> None:
    pod = template(case(name))["spec"]
    volumes = [volume["name"] for volume in pod["volumes"]]
    assert len(volumes) == len(set(volumes))
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        paths = [mount["mountPath"] for mount in container["volumeMounts"]]
        assert len(paths) == len(set(paths))
        assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)


def test_a_part_of_a_node_is_worth_a_word() -> None:
    run = run_on({"fabric": "aws-efa", "fabric_parameters": {"shape": "p5"}}, gpus=4)
    assert any("node with 8 GPUs, and gang.resources.gpu = 4" in text for text in warnings(run))


def test_a_fabric_between_nodes_on_one_node_is_worth_a_word() -> None:
    run = run_on({"fabric": "ib-coreweave", "nnodes": 1})
    assert any("gang.nnodes = 1: nothing crosses it" in text for text in warnings(run))


def known(model: type[BaseModel], manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest without the fields that Kubernetes does not have: Hera's models come from its own schema."""
    return model.model_validate(manifest).model_dump(mode="json", exclude_none=True, by_alias=True)


@pytest.mark.parametrize("name", GANGS)
def test_every_field_is_one_of_kubernetes(name: str) -> None:
    pod = template(case(name))["spec"]
    for volume in pod["volumes"]:
        assert known(models.Volume, volume) == volume
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        assert known(models.Container, container) == container
    assert known(models.Affinity, pod.get("affinity", {})) == pod.get("affinity", {})
    for claim in pod.get("resourceClaims", []):
        assert set(claim) == {"name", "resourceClaimTemplateName"}


def test_the_check_of_fields_can_fail() -> None:
    assert known(models.Volume, {"name": "x", "hostPath": {"paht": "/x", "path": "/"}}) == {
        "name": "x",
        "hostPath": {"path": "/"},
    }
