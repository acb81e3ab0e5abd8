"""Every field can be explained, with its unit."""

from __future__ import annotations

import subprocess
import sys

import pytest

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.placeholders import VARIABLES
from argosy.workflows.spec.explain import explain_field, field_paths
from argosy.workflows.spec.refusal import table_model
from argosy.workflows.spec.run import TrainingRun

UNITS = ("seconds", "hours", "count", "bytes", "GiB", "cores", "steps", "samples", "unit", "right at", "number")


def test_a_field_has_description_type_default_and_unit() -> None:
    for path in field_paths():
        text = explain_field(path)
        head, description, kind, default, *more = text.splitlines()
        assert head == path
        assert bool(more) == (path in ("gang.fabric", "args", "env", "evaluation.args")), f"{path}: values are listed"
        assert len(description.strip()) > 10, path
        assert kind.startswith("  type: "), path
        assert default.startswith("  default: "), path
        if "number" in kind and "table" not in kind:
            assert any(unit in description for unit in UNITS), f"{path}: no unit in {description!r}"
        if path.endswith("_seconds"):
            assert "seconds" in description, path


def test_a_default_is_said_as_it_is() -> None:
    assert explain_field("trigger.marker").endswith('default: ["_SUCCESS", "_READY", ".manifest.json"]')
    assert explain_field("secrets").endswith("default: []")


def test_a_limit_is_written_out() -> None:
    assert "type: number > 0, <= 10000000\n" in explain_field("checkpoint.failure_hours")


def test_a_table_lists_its_fields() -> None:
    text = explain_field("gang.resources")
    assert all(f"  {name} " in text for name in ("cpu", "memory", "gpu", "gpu_resource"))
    assert explain_field("[gang]").startswith("gang: ")
    assert "tolerations        list of tables: " in explain_field("gang")


def test_all_of_it() -> None:
    assert all(f"  {name} " in explain_field() for name in TrainingRun.model_fields)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("gnag", "there is no field 'gnag'; did you mean 'gang'?"),
        ("gang.nodes", r"no field 'nodes' in \[gang\]; did you mean 'nnodes'?"),
        ("name.first", "name has no fields of its own"),
        (".", "there is no field ''"),
        ("gang..nnodes", r"no field '' in \[gang\]"),
    ],
)
def test_unknown_fields(path: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        explain_field(path)


@pytest.mark.parametrize(
    ("path", "field"), [("args.1", "args"), ("env.FOO", "env"), ("gang.tolerations.0.key", "gang.tolerations.key")]
)
def test_a_place_in_a_list_or_table_as_errors_name_it_is_of_its_field(path: str, field: str) -> None:
    assert explain_field(path) == explain_field(field)


def test_every_table_has_a_docstring() -> None:
    tables = [table_model(info.annotation) for info in TrainingRun.model_fields.values()]
    assert all(table.__doc__ for table in tables if table is not None)


def test_describing_a_run_imports_no_hera() -> None:
    program = "import argosy.workflows.spec.load, argosy.workflows.spec.explain, argosy.workflows.bound, sys\n"
    program += "print(','.join({'hera', 'torch', 'obstore', 'boto3', 'requests'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_words_in_braces_stand_beside_the_variables_that_a_script_finds() -> None:
    text = explain_field("env")
    assert text.partition("The script")[2] == explain_field("args").partition("The script")[2]
    for word, (variable, what) in VARIABLES.items():
        assert (f"{{{word}}}" in text) == (word != "metrics")
        assert f"${variable}  " in text or word == "metrics"
        assert what in text or word == "metrics"
    assert "{metrics}" in explain_field("evaluation.args")
