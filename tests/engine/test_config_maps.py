"""ConfigMaps that are given with a workflow: what of them is refused, and that they may come from a file."""

# ruff: noqa: E501  (YAML reads better in one line)

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.main import invoke
from argosy.workflows.engine.api import RunOptions, check, run
from argosy.workflows.engine.config_maps import ConfigMaps
from argosy.workflows.engine.locks import Lock, Locks, lock_problems, locks_of
from tests.engine.conftest import workflow

MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {k: v}}"
MAIN = "- {name: main, %scontainer: {image: i, command: ['true'], %s}}"
ENV = MAIN % ("", "env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: k}}}]")
VOLUME = MAIN % ("volumes: [{name: v, configMap: {name: m, items: [{key: k, path: %s}]}}], ", "volumeMounts: []")

REFUSED = {
    "env[0].valueFrom.configMapKeyRef: ConfigMap 'm' was not given; add it to the YAML, or a file with it by --templates": (
        "",
        ENV,
    ),
    "env[0].valueFrom.configMapKeyRef: ConfigMap 'm' has no key 'k'; it has z": (MAP.replace("{k:", "{z:"), ENV),
    "envFrom[0].configMapRef: ConfigMap 'm' was not given": ("", MAIN % ("", "envFrom: [{configMapRef: {name: m}}]")),
    "volume 'v': ConfigMap 'm' was not given": ("", VOLUME % "x"),
    "volume 'v': '../x' must be a relative path without '..'": (MAP, VOLUME % "../x"),
    "ConfigMap 'm': was given twice": (f"{MAP}\n---\n{MAP}", ENV),
    "ConfigMap 'm': dat: unknown field": (MAP.replace(", data", ", dat"), ENV),
    "ConfigMap '': metadata.name: missing": (MAP.replace("name: m", ""), ENV),
    "ConfigMap 'm': k: keys are of": (MAP.replace("k: v", "k: 1"), ENV),
    "ConfigMap 'm': binaryData: no base64": (MAP.replace("data: {k: v}", "binaryData: {k: '*'}"), ENV),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_no_cluster_would_run_is_refused_before_anything_starts(message: str, tmp_path: Path) -> None:
    given, template = REFUSED[message]
    with pytest.raises(InputError) as refused:
        check(given.encode() + b"\n---\n" + workflow(template), RunOptions(state_dir=tmp_path))
    assert message in str(refused.value)


def test_a_parameter_needs_the_label_that_argo_looks_for(tmp_path: Path) -> None:
    spec = "entrypoint: main\narguments: {parameters: [{name: p, valueFrom: {configMapKeyRef: {name: m, key: k}}}]}"
    document = MAP.encode() + b"\n---\n" + workflow(MAIN % ("", ""), spec)
    with pytest.raises(InputError, match=r"'p': ConfigMap 'm' does not exist. Please make sure it has the label"):
        check(document, RunOptions(state_dir=tmp_path))
    check(document, RunOptions(state_dir=tmp_path, parameters={"p": "given"}))


@pytest.mark.parametrize(("which", "phase"), [("m", "Succeeded"), ("other", "Error")])
def test_one_from_a_file_and_by_a_name_that_only_the_run_knows(which: str, phase: str, tmp_path: Path) -> None:
    file = tmp_path / "maps.yaml"
    file.write_text(MAP)
    env = "env: [{name: A, valueFrom: {configMapKeyRef: {name: '{{workflow.parameters.which}}', key: k}}}]"
    main = f"- {{name: main, container: {{image: i, command: [sh, -c, 'test $A = v'], {env}}}}}"
    options = RunOptions(state_dir=tmp_path, templates=(file,), parameters={"which": which})
    state = run(workflow(main, "entrypoint: main\narguments: {parameters: [{name: which}]}"), options)
    assert state.phase == phase
    assert state.message == ("" if which == "m" else state.message)
    assert which == "m" or "ConfigMap 'other' was not given" in state.message


def test_submit_creates_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "workflow.yaml"
    file.write_bytes(MAP.encode() + b"\n---\n" + workflow(ENV))
    assert invoke(["submit", str(file)]) == 2
    assert "holds the ConfigMap 'm', which `argosy submit` does not create" in capsys.readouterr().err


def test_a_semaphore_has_room_for_as_many_as_its_config_map_says(tmp_path: Path) -> None:
    configs = ConfigMaps()
    configs.add({"metadata": {"name": "c"}, "data": {"two": "2", "none": "0", "word": "x"}}, "here")
    wanted = {"semaphores": [{"configMapKeyRef": {"name": "c", "key": "two"}}], "mutexes": [{"name": "m"}]}
    semaphore, mutex = locks_of(wanted, configs)
    assert (semaphore, mutex) == (Lock("ConfigMap/c/two", 2), Lock("Mutex/m"))
    one, other = Locks(tmp_path), Locks(tmp_path)
    assert (one.acquire("a", [semaphore, mutex]), one.acquire("a", [semaphore])) == (None, None)
    assert other.acquire("b", [semaphore, mutex]) == mutex, "and the semaphore is given back"
    assert other.acquire("b", [semaphore]) is None
    assert other.acquire("c", [semaphore]) == semaphore
    one.release("a")
    assert other.acquire("c", [semaphore]) is None
    for key in ("none", "word"):
        told = [*lock_problems({"semaphores": [{"configMapKeyRef": {"name": "c", "key": key}}]}, configs, "spec")]
        assert "is no limit" in told[0]
