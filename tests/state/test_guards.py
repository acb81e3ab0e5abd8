"""What must hold before a state is trusted: ranks that describe it alike, files that hold what state.json says."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from argosy.steps.state.files import read_state
from argosy.steps.state.plan import TensorFacts, fingerprint
from argosy.steps.state.stored import STATE_PATH, state_bytes, stored_state

FACTS = TensorFacts("w", "float32", (2, 3), 4)


@pytest.mark.parametrize(
    "other",
    [
        TensorFacts("v", "float32", (2, 3), 4),
        TensorFacts("w", "int32", (2, 3), 4),
        TensorFacts("w", "float32", (3, 2), 4),
        TensorFacts("w", "float32", (2, 3), 4, (), "(Shard(dim=0),) on a mesh"),
    ],
    ids=["name", "type", "shape", "placement"],
)
def test_ranks_that_hold_something_else_are_told_apart(other: TensorFacts) -> None:
    more = TensorFacts("x", "int8", (), 1)
    assert fingerprint([FACTS, more]) == fingerprint([more, FACTS])
    assert fingerprint([other, more]) != fingerprint([FACTS, more])


def piece(offset: list[int], shape: list[int]) -> dict[str, Any]:
    return {"file": "t.safetensors", "name": f"w@{offset}", "offset": offset, "shape": shape}


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([piece([0, 0], [1, 3])], "not covered"),
        ([piece([0, 0], [2, 3]), piece([0, 0], [1, 3])], "not covered"),
        ([piece([0, 0], [1, 2]), piece([0, 1], [1, 2]), piece([1, 0], [1, 2])], "not covered"),  # sizes add up
        ([piece([0, 0], [1, 3]), piece([2, 0], [1, 3])], "outside"),
        ([piece([-1, 0], [1, 3]), piece([1, 0], [1, 3])], "outside"),
    ],
)
def test_pieces_that_are_not_the_tensor(pieces: list[dict[str, Any]], words: str) -> None:
    tensors = {"w": {"dtype": "float32", "shape": [2, 3], "pieces": pieces}}
    with pytest.raises(ValueError, match=words):
        stored_state(state_bytes(1, {}, tensors))


def test_a_state_of_a_version_that_is_not_known() -> None:
    raw = state_bytes(1, {}, {}).replace(b"argosy.state/1", b"argosy.state/2")
    with pytest.raises(ValueError, match=r"argosy\.state/2"):
        stored_state(raw)


def test_a_file_whose_tensor_is_of_another_type_or_elsewhere() -> None:
    pytest.importorskip("torch")
    one = piece([0], [3])
    state = state_bytes(1, {"w": {"$tensor": "w"}}, {"w": {"dtype": "float32", "shape": [3], "pieces": [one]}})

    def file_of(name: str, dtype: str, size: int) -> bytes:
        header = json.dumps({name: {"dtype": dtype, "shape": [3], "data_offsets": [0, size]}}).encode()
        return struct.pack("<Q", len(header)) + header + bytes(24)

    def read(raw: bytes) -> Any:
        return read_state(lambda path: bytearray(state if path == STATE_PATH else raw))

    assert read(file_of(one["name"], "F32", 12))[1]["w"].tolist() == [0, 0, 0]
    for raw in (file_of(one["name"], "F64", 24), file_of("v", "F32", 12)):
        with pytest.raises(ValueError, match="does not hold"):
            read(raw)
