"""A run with every table, the reading back of what was compiled, and Hera's globals as they were."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from argosy.workflows.code import CodeArchive
from argosy.workflows.compile import compile_run
from argosy.workflows.spec.run import TrainingRun
from tests.compile.unfactored import loaded, loaded_all, unfactored

CODE = CodeArchive(b"", "c" * 64, ())
FULL: dict[str, Any] = {
    "name": "full",
    "script": "train.py",
    "dataset": {"uri": "file:///mnt/argosy/data-sets/one"},
    "gang": {"nnodes": 2, "nproc_per_node": 2, "tolerations": [{"key": "gpu"}]},
    "evaluation": {"script": "judge.py", "metric": "loss", "direction": "min", "floor": 2.0},
    "promotion": {},
    "batch": {"micro_batch_size": 4, "base_learning_rate": 0.1, "base_batch_size": 8},
}


def merged(base: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of ``base`` in which the dotted ``path`` is ``value``."""
    result = copy.deepcopy(base)
    *tables, leaf = path.split(".")
    table = result
    for name in tables:
        table = table.setdefault(name, {})
        table = table[0] if isinstance(table, list) else table
    table[leaf] = value
    return result


@pytest.fixture
def full() -> dict[str, Any]:
    return copy.deepcopy(FULL)


@pytest.fixture
def change() -> Callable[[dict[str, Any], str, Any], dict[str, Any]]:
    return merged


@pytest.fixture
def compiled() -> Callable[..., str]:
    """Fields -> the YAML text, without the digest of the description (every field changes that)."""

    def build(fields: dict[str, Any], code: CodeArchive | None = CODE) -> str:
        run = TrainingRun(**fields)
        text = compile_run(run, code=code if run.code else None).decode()
        return re.sub(r"--run-digest=[0-9a-f]{64}", "--run-digest=", text)

    return build


@pytest.fixture
def document(compiled: Callable[..., str]) -> Callable[..., dict[str, Any]]:
    """Fields -> the workflow, with all that it has in one place put back into each template."""
    return lambda fields: unfactored(loaded(compiled(fields)))


@pytest.fixture
def gang_of() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The gang's workload inside a workflow: the JobSet or Job."""

    def read(workflow: dict[str, Any]) -> dict[str, Any]:
        train = next(each for each in workflow["spec"]["templates"] if each["name"] == "train")
        *_, workload = loaded_all(train["inputs"]["artifacts"][0]["raw"]["data"])
        assert isinstance(workload, dict)
        return workload

    return read


@pytest.fixture
def hera_untouched() -> Iterator[None]:
    """Fails a test that leaves Hera's global configuration changed."""
    from hera.shared import global_config

    before = copy.deepcopy(vars(global_config))
    yield
    assert vars(global_config) == before
