"""What stands in a Workflow once means the same as if it stood in every template."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.workflows.code import CodeArchive
from argosy.workflows.compile import build_workflow, compile_run
from argosy.workflows.factoring import factored
from argosy.workflows.spec.load import load_run
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.template_defaults import with_defaults
from argosy.workflows.yaml_text import to_yaml
from tests.compile.unfactored import in_one_order, loaded, unfactored

ROOT = Path(__file__).resolve().parents[2]
RUNS = sorted([*ROOT.glob("examples/*/*.toml"), *ROOT.glob("tests/goldens/*.toml")])
CODE = CodeArchive(b"", "0f" * 32, ())
HAND_WRITTEN = ROOT / "tests/goldens/hand-written/stdlib-gpt.yaml"


def both(run: TrainingRun) -> tuple[dict[str, Any], dict[str, Any]]:
    """The Workflow as it is compiled, and as its templates made it."""
    code = CODE if run.code else None
    whole = build_workflow(run, code_digest=CODE.digest if run.code else "").build()
    plain = loaded(to_yaml(whole.model_dump(exclude_none=True, by_alias=True)))
    return loaded(compile_run(run, code=code)), plain


@pytest.mark.parametrize("path", RUNS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_run_means_what_its_templates_say(path: Path) -> None:
    compiled, plain = both(load_run(path))
    assert in_one_order(unfactored(copy.deepcopy(compiled))) == in_one_order(plain)
    pods = [each for each in compiled["spec"]["templates"] if "container" in each]
    assert not any("securityContext" in each or "securityContext" in each["container"] for each in pods)
    assert all("retryStrategy" in each for each in pods)
    assert "retryStrategy" not in compiled["spec"]["templateDefaults"]


def test_what_a_pod_lacks_is_no_default(full: dict[str, Any]) -> None:
    full["gang"]["service_account"] = "trainer"
    full["secrets"] = ["keys"]
    compiled, plain = both(TrainingRun(**full))
    assert in_one_order(unfactored(copy.deepcopy(compiled))) == in_one_order(plain)
    assert str(compiled).count("'serviceAccountName': 'trainer'") == 1
    assert compiled["spec"]["templateDefaults"]["container"]["envFrom"] == [{"secretRef": {"name": "keys"}}]


def test_a_template_of_a_workflow_template_has_all_that_its_caller_would_not_give_it(full: dict[str, Any]) -> None:
    document = loaded(compile_run(TrainingRun(**full), code=CODE, kind="WorkflowTemplate"))
    assert "templateDefaults" not in document["spec"]
    assert all("securityContext" in each for each in document["spec"]["templates"] if "container" in each)


def test_it_is_as_short_as_what_a_person_writes() -> None:
    compiled = compile_run(load_run(ROOT / "examples/stdlib-gpt/run.toml"), code=CODE).decode()
    theirs = [line for line in HAND_WRITTEN.read_text().splitlines() if not line.lstrip().startswith("#")]
    assert len(compiled.splitlines()) <= 1.1 * len(theirs)


NAMES = st.sampled_from("abcd")
VALUES = st.integers(0, 2)
NAMED = st.dictionaries(NAMES, VALUES, max_size=4)
POD = st.fixed_dictionaries(
    {"container": st.fixed_dictionaries({}, optional={
        "image": NAMES,
        "env": NAMED.map(lambda given: [{"name": name, "value": value} for name, value in given.items()]),
        "envFrom": st.lists(VALUES, max_size=2),
        "resources": st.dictionaries(NAMES, NAMED, max_size=2),
        "volumeMounts": NAMED.map(lambda given: [{"mountPath": name, "name": value} for name, value in given.items()]),
    })},
    optional={
        "serviceAccountName": NAMES,
        "volumes": NAMED.map(lambda given: [{"name": name, "emptyDir": {"x": value}} for name, value in given.items()]),
        "securityContext": NAMED,
        "podSpecPatch": NAMED.map(to_yaml).map(lambda text: str(loaded(text)).replace("'", '"')),
    },
)  # fmt: skip


@settings(max_examples=300)
@given(pods=st.lists(POD, min_size=1, max_size=4))
def test_whatever_pods_share_comes_back(pods: list[dict[str, Any]]) -> None:
    templates = [{"name": f"t{index}", **pod} for index, pod in enumerate(pods)]
    document = {"spec": {"templates": [{"name": "main", "dag": {"tasks": []}}, *copy.deepcopy(templates)]}}
    before = copy.deepcopy(document)
    made = factored(document)
    assert document == before, "the document that was given was changed"
    for pod, template in zip(templates, made["spec"]["templates"][1:], strict=True):
        found = with_defaults(made["spec"], template)
        for name, value in pod["container"].items():
            assert sorted_(found["container"][name]) == sorted_(value)
        assert set(found["container"]) == set(pod["container"])
        assert {**made["spec"], **template}.get("securityContext") == pod.get("securityContext")
        volumes = [*made["spec"].get("volumes", []), *template.get("volumes", [])]
        assert sorted_(volumes) == sorted_(pod.get("volumes", []))
        patches = [loaded(each.get("podSpecPatch", "{}")) for each in (made["spec"], template, pod)]
        assert {**patches[0], **patches[1]} == patches[2]
    assert with_defaults(made["spec"], before["spec"]["templates"][0]) == before["spec"]["templates"][0]


def sorted_(value: Any) -> Any:
    return sorted(value, key=str) if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("defaults", "template", "merged"),
    [
        ({"retryStrategy": {"limit": 1, "retryPolicy": "Always"}}, {"retryStrategy": {"limit": 2}},
         {"retryStrategy": {"limit": 2, "retryPolicy": "Always"}}),
        ({"container": {"image": "i", "args": ["a"]}}, {"container": {"args": ["b"]}},
         {"container": {"image": "i", "args": ["b"]}}),
        ({"container": {"image": "i"}}, {"dag": {"tasks": []}}, {"dag": {"tasks": []}}),
        # What only the template has comes first; what both have keeps the defaults' order with what only they have.
        ({"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "x": 1}]},
         {"volumes": [{"name": "c"}, {"name": "b", "y": 2}]},
         {"volumes": [{"name": "c"}, {"name": "a", "emptyDir": {}}, {"name": "b", "x": 1, "y": 2}]}),
        ({"container": {"volumeMounts": [{"mountPath": "/a", "name": "x"}], "envFrom": [1]}},
         {"container": {"volumeMounts": [{"mountPath": "/a", "name": "y"}], "envFrom": [2]}},
         {"container": {"volumeMounts": [{"mountPath": "/a", "name": "y"}], "envFrom": [2]}}),
        ({"tolerations": [{"key": "k", "operator": "Exists"}]}, {"tolerations": [{"key": "k", "effect": "NoExecute"}]},
         {"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute"}]}),
    ],
)  # fmt: skip
def test_defaults_are_merged_as_argo_merges_them(
    defaults: dict[str, Any], template: dict[str, Any], merged: dict[str, Any]
) -> None:
    assert with_defaults({"templateDefaults": defaults}, template) == merged
