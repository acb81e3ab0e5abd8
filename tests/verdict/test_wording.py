"""What a line says of itself, apart from its guesses, its advice and its record's other fields."""

from __future__ import annotations

import time

import pytest

from argosy.steps.verdict.match import topic_of
from argosy.steps.verdict.wording import own_words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('level=info msg="pod deleted" namespace=a workflow=b', "pod deleted"),
        ('time="t" level=error msg="upload failed" error="quota exceeded" key=x', "upload failed quota exceeded"),
        (r'"log":"time=\"t\" level=info msg=\"step failed: Error\" displayName=\"runtime(0)\"', "step failed: Error"),
        ('{"message": "node is gone", "event_id": "x", "host_name": "y"}', "node is gone"),
        ("{'message': cut off", "{'message': cut off"),
        ("Session lost. This may be due to a preemption. Error: OS Error", "Session lost. Error: OS Error"),
        ("Out of slots. Please check the image.", "Out of slots."),
        (':{"description":"Late","file":"external/com_github_grpc/x.cc"}', ':{"description":"Late",}'),
        ("Lost executor 3. Likely due to a quota.", "Lost executor 3."),
        (
            "CommandError: Command mkdir --flag unknown failed with return code 2",
            "CommandError: command failed with return code 2",
        ),
        ("This may be caused by a full disk.", "This may be caused by a full disk."),
    ],
)
def test_its_own_words(line: str, words: str) -> None:
    assert own_words(line)[0] == words


def test_what_is_only_possible_is_not_what_happened() -> None:
    # google-research/text-to-text-transfer-transformer#280: the upload failed, and nothing was preempted.
    assert topic_of("An error was raised. This may be due to a preemption in a connected worker.") is None


def test_advice_speaks_where_nothing_else_does() -> None:
    assert topic_of("Server failed. Make sure the value of the s3 signature is valid") == "s3_access"


@pytest.mark.parametrize(
    "line", ["might " * 100_000, '{"message": "' + "x may y " * 100_000 + '"}', "may be due to b. " * 50_000]
)
def test_a_long_line_costs_little(line: str) -> None:
    began = time.process_time()
    own_words(line)
    assert time.process_time() - began < 1
