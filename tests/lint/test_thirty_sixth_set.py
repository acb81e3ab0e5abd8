"""What the thirty-sixth set of public manifests showed to be false, and what the record called noise, in small."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import pod
from tests.lint.test_twenty_eighth_set import said

MOUNT = "volumeMounts: [{name: store, mountPath: /x}]"
SERVICE = '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "%s"}, "spec": {"ports": [{"port": 80}]}}\n'


@pytest.mark.parametrize(
    ("comment", "level"),
    [
        ("", "error"),
        ("# Set up your storage here\n# volumes:\n#   - name: store\n", "warning"),
        ("# volumes:\n#   - name: stores\n", "error"),
        ("# the mount of store\n", "error"),
    ],
)
def test_a_volume_that_stands_in_a_comment_is_left_to_write(comment: str, level: str) -> None:
    assert [each for each in said(comment + pod(MOUNT)) if each[0] == "STORE001"] == [("STORE001", level)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SERVICE % "a" + SERVICE % "b", []),  # as kubectl takes it
        (SERVICE % "a" + SERVICE % "B", [("API008", "warning")]),
        (SERVICE % "a" + "a: [", [("YAML001", "error")]),
        (SERVICE % "a" + SERVICE.replace("}\n", "\n") % "b", [("YAML001", "error")]),
    ],
)
def test_objects_of_json_on_a_line_each(text: str, expected: list[tuple[str, str]]) -> None:
    assert said(text) == expected


@pytest.mark.parametrize(("value", "expected"), [("Simple", []), ("LL128", [("NCCL041", "warning")]), ("^LL128", [])])
def test_vendors_pages_ask_for_a_protocol(value: str, expected: list[tuple[str, str]]) -> None:
    text = pod(f"command: [torchrun, train.py]\nenv: [{{name: NCCL_PROTO, value: {value}}}]")
    assert [each for each in said(text) if each[0] == "NCCL041"] == expected
