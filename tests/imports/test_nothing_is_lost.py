"""Whatever stands in a manifest turns up in the account, by its path; whatever it is, there is no traceback."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from argosy.steps.contract.errors import InputError
from argosy.workflows.compile import compile_run
from argosy.workflows.imports.convert import Imported, convert
from argosy.workflows.imports.record import record
from argosy.workflows.manifests.reading import read_text
from argosy.workflows.spec.load import parse_run
from tests.imports.account import Account, leaves
from tests.imports.cases import FOLDER

FILES = sorted(FOLDER.iterdir())
MANIFESTS = [list(yaml.safe_load_all(file.read_text())) for file in FILES]
STRANGE = "argosyHasNoSuchField"
JUNK = (
    None,
    [],
    {},
    "",
    "x",
    0,
    -1,
    2**70,
    1.5,
    True,
    [None],
    {"a": None},
    "$(X)",
    "{{x}}",
    "\ud800",
    "a\nb",
    "/",
    "..",
)
_settings = settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


class Plain(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML without dates and tags: 2026-99-99 is text to Kubernetes."""


for _tag in ("timestamp", "int", "float", "binary", "set", "omap", "pairs"):
    Plain.add_constructor(f"tag:yaml.org,2002:{_tag}", lambda loader, node: getattr(node, "value", ""))

Plain.add_multi_constructor("!", lambda loader, tag, node: getattr(node, "value", ""))


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place below, the value itself first."""
    yield path
    if isinstance(value, dict):
        for key, below in value.items():
            yield from places(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from places(below, (*path, index))


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def dotted(path: tuple[str | int, ...]) -> str:
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


def text_of(documents: list[Any]) -> str:
    """YAML without anchors, so that each place is one of its own; JSON is YAML and keeps what YAML would quote."""
    return "\n---\n".join(json.dumps(each) for each in documents)


def brought_in(text: str) -> tuple[Imported, Account]:
    imported = convert([read_text(text.encode("utf-8", "surrogatepass"), "manifest.yaml")])
    return imported, Account(record(imported))


ALL = [(number, path) for number, documents in enumerate(MANIFESTS) for path in places(documents) if path]


@_settings
@given(st.data())
def test_an_unknown_field_is_found_by_its_path(data: st.DataObject) -> None:
    number, path = data.draw(
        st.sampled_from([each for each in ALL if isinstance(at(MANIFESTS[each[0]], each[1]), dict)])
    )
    documents = copy.deepcopy(MANIFESTS[number])
    value = data.draw(st.sampled_from(["a text", 7, {"inner": [1]}, ["x", {"y": 2}]]))
    at(documents, path)[STRANGE] = value
    _, account = brought_in(text_of(documents))
    where = dotted((*path[1:], STRANGE))  # the same mapping may stand in two roles
    document = path[0]
    assert isinstance(document, int)
    for leaf, _ in leaves(value, where):
        assert account.fates_in(leaf, document), f"nothing is said of {leaf}"
    carried = STRANGE in account.record["toml"]
    assert carried or "kept" not in account.fates_in(where, document), f"{where} is not kept, but said to be"


@_settings
@given(st.data())
def test_a_further_container_is_named(data: st.DataObject) -> None:
    found = [each for each in ALL if each[1][-1] in ("containers", "initContainers")]
    number, path = data.draw(st.sampled_from(found))
    documents = copy.deepcopy(MANIFESTS[number])
    at(documents, path).append({"name": "sentinel", "image": "example/sentinel:1", "command": ["sleep", "9"]})
    _, account = brought_in(text_of(documents))
    where = dotted((*path[1:], len(at(documents, path)) - 1))
    document = path[0]
    assert isinstance(document, int)
    assert account.fates_in(where, document) & {"not representable", "by hand", "changed"}
    assert "kept" not in account.fates_in(where, document)


@settings(_settings, max_examples=150)
@given(st.sampled_from(ALL), st.sampled_from(JUNK))
def test_junk_in_any_place_is_an_error_for_the_user_or_a_result(place: tuple[int, Any], junk: Any) -> None:
    number, path = place
    documents = copy.deepcopy(MANIFESTS[number])
    if len(path) == 1:
        documents[path[0]] = junk
    else:
        at(documents, path[:-1])[path[-1]] = junk
    check_result(text_of(documents))


@settings(_settings, max_examples=60)
@given(st.sampled_from(FILES), st.integers(0, 10_000), st.integers(0, 60), st.text(max_size=6))
@example(FILES[0], 0, 0, "\0")
def test_a_torn_file_is_an_error_for_the_user_or_a_result(file: Path, start: int, length: int, text: str) -> None:
    whole = file.read_text()
    start %= len(whole)
    check_result(whole[:start] + text + whole[start + length :])


SCRIPTS = st.lists(
    st.sampled_from(
        ["torchrun", "python", "-m", "x.y", "train.py", "--a=1", "\"$@\"", "$X", "${X:-2}", "$(date)", "&&", ";", "|",
         "if [ 1 ]; then", "fi", "for i in 1; do", "done", "cat <<E\n", "\nE\n", "\n", "'", '"', "`", "\\", "cd /a",
         "&", "export A=1", "bash -c", "'python b.py'", "mpirun -np 2", "accelerate launch", "(", ")", "{", "}", "case",
         "#", "$((1+2))", "deepspeed", "--", "-", "exec", "env", "timeout 5", "conda run -n x", "${", "*", "é",
         "$", "$'a'"]
    ),
    max_size=12,
).map(" ".join)  # fmt: skip


@settings(_settings, max_examples=200)
@given(SCRIPTS, st.booleans())
def test_any_command_line_is_an_error_for_the_user_or_a_result(script: str, shell: bool) -> None:
    container = {"name": "c", "image": "i", "env": [{"name": "X", "value": "a b"}]}
    container["command"] = ["bash", "-c", script, "name", "one", "two"] if shell else script.split()  # type: ignore[assignment]
    spec = {"completions": 2, "parallelism": 2, "template": {"spec": {"containers": [container]}}}
    check_result(json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}))


def check_result(text: str) -> None:
    """An error that says what is wrong, or a run that reads back as it is, with one fate for each value."""
    try:
        imported, account = brought_in(text)
    except InputError:
        return
    json.dumps(account.record)
    assert parse_run(imported.toml) == imported.run
    with contextlib.suppress(InputError):
        compile_run(imported.run)
    assert account.unspoken_in(list(yaml.load_all(text, Loader=Plain))) == []


def test_the_check_of_fates_can_fail() -> None:
    _, account = brought_in(FILES[0].read_text())
    account.entries[:] = [each for each in account.entries if not each["path"].endswith("image")]
    assert account.unspoken(FILES[0])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_windows_line_ends_change_nothing(file: Path) -> None:
    plain, _ = brought_in(file.read_text())
    windows, _ = brought_in(file.read_text().replace("\n", "\r\n"))
    assert windows.run == plain.run


PLACEHOLDERS = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          tolerations:
            - {key: gpu, operator: Exists}
            - {key: team, operator: Equal, value: "${TEAM}"}
          containers:
            - name: pytorch
              image: registry.example/train:1.4.2
              command: [torchrun, "--nproc_per_node=$GPUS", train.py]
              resources:
                limits: {memory: "${MEMORY}", nvidia.com/gpu: "$GPUS"}
                requests: {nvidia.com/gpu: "$GPUS"}
"""


@pytest.mark.parametrize(
    "path",
    ["tolerations[1].key", "containers[0].command[1]"]
    + [
        f"containers[0].resources.{each}"
        for each in ("limits.memory", "limits.nvidia.com/gpu", "requests.nvidia.com/gpu")
    ],
)
def test_what_is_filled_in_later_and_did_not_arrive_is_not_called_kept(path: str) -> None:
    _, account = brought_in(PLACEHOLDERS)
    assert account.fates_in(f"spec.pytorchReplicaSpecs.Worker.template.spec.{path}") == {"by hand"}
