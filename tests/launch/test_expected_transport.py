"""What the compiler says about the network is what the pod reads."""

from __future__ import annotations

import json

import pytest

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.transport import ExpectedTransport

EXPECTED = ExpectedTransport("IB", True, 8, 400, True, 266.0, "ib-sriov")


def test_it_travels_through_the_arguments_of_launch() -> None:
    written = LaunchArgs(store_uri="s3://b", name="n", script="t.py", expected_transport=EXPECTED.to_json()).to_argv()
    assert ExpectedTransport.from_json(LaunchArgs.from_argv(written).expected_transport) == EXPECTED
    assert EXPECTED.to_json().isascii()
    assert "\n" not in EXPECTED.to_json()


def test_a_newer_compiler_may_say_more() -> None:
    more = json.dumps(json.loads(EXPECTED.to_json()) | {"colour": "green", "busbw_floor_gbs": 266})
    assert ExpectedTransport.from_json(more) == EXPECTED


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nics": "8"}, "nics: '8' is no int"),
        ({"nics": True}, "nics: True is no int"),
        ({"gdr": 1}, "gdr: 1 is no bool"),
        ({"network": None}, "network: None is no str"),
        ({"profile": ...}, "profile: missing"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], said: str) -> None:
    record = json.loads(EXPECTED.to_json()) | change
    text = json.dumps({name: value for name, value in record.items() if value is not ...})
    with pytest.raises(InputError, match=said):
        ExpectedTransport.from_json(text)


@pytest.mark.parametrize("text", ["", "no", "[]", "3"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"expected-transport = .*a JSON object"):
        ExpectedTransport.from_json(text)
