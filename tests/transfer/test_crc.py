"""Checksums against published values, and pieces joined against the whole."""

from __future__ import annotations

import random

import pytest
from awscrt import checksums

from argosy.steps.contract.errors import InputError
from argosy.steps.transfer import crc


@pytest.mark.parametrize(
    ("algorithm", "value", "text"),
    [
        ("crc64nvme", 0xAE8B14860A799888, "crc64nvme:rosUhgp5mIg="),
        ("crc32c", 0xE3069283, "crc32c:4waSgw=="),
        ("crc32", 0xCBF43926, "crc32:y/Q5Jg=="),
    ],
)
def test_the_published_check_values(algorithm: str, value: int, text: str) -> None:
    assert crc.crc(algorithm, b"123456789") == value
    assert crc.text(algorithm, value) == text
    assert crc.decoded(algorithm, text.partition(":")[2]) == value


def test_a_hash_is_written_in_hex() -> None:
    running = crc.Running("sha256")
    running.update(b"abc")
    text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert crc.text("sha256", running.values()["sha256"]) == text
    assert crc.decoded("sha256", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=") == running.values()["sha256"]


@pytest.mark.parametrize("algorithm", crc.BYTES)
def test_pieces_joined_are_the_whole(algorithm: str, seed: int) -> None:
    drawn = random.Random(seed)
    for _ in range(50):
        data = drawn.randbytes(drawn.randrange(2000))
        cuts = sorted(drawn.randrange(len(data) + 1) for _ in range(drawn.randrange(5)))
        joined, running = 0, crc.Running(algorithm)
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            joined = crc.combine(algorithm, joined, crc.crc(algorithm, data[start:end]), end - start)
            running.update(memoryview(data)[start:end])
        assert joined == crc.crc(algorithm, data) == running.values()[algorithm]


@pytest.mark.parametrize("algorithm", crc.BYTES)
def test_pieces_of_any_length_are_joined_as_awscrt_does(algorithm: str, seed: int) -> None:
    drawn, bits = random.Random(seed), 8 * crc.BYTES[algorithm]
    theirs = getattr(checksums, f"combine_{algorithm}")
    for length in (0, 1, *(drawn.randrange(1 << size) for size in range(1, 50))):
        first, second = drawn.getrandbits(bits), drawn.getrandbits(bits)
        assert crc.combine(algorithm, first, second, length) == theirs(first, second, length)


def test_what_is_no_checksum_is_refused() -> None:
    with pytest.raises(InputError, match="use crc64nvme"):
        crc.crc("md5", b"")
