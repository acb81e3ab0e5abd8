"""What the thirty-first set of public manifests showed to be wrong, and its siblings, in small."""

from __future__ import annotations

import pytest

from tests.lint.test_twenty_eighth_set import POD, said


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--server-tls-secret=server-tls", []),
        ("--client-secret=Ab3xK9qq", [("SEC017", "warning")]),
        ("--password=server-tls", []),
    ],
)
def test_an_option_that_names_a_secret(argument: str, expected: list[tuple[str, str]]) -> None:
    assert said(f"{POD}      args: [make, {argument}]\n") == expected


VOLCANO = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: j}}
spec:
  minAvailable: 2
  schedulerName: volcano
  policies: [{{event: '*', action: RestartJob}}]
  tasks:
  - name: rank
    replicas: 2
    template:
      spec:
        restartPolicy: OnFailure
        containers:
        - name: c
          image: r/x:1
          command: [torchrun, --nnodes=2, {0}, '--rdzv_endpoint=j-rank-0.j:29500', train.py]
"""


@pytest.mark.parametrize(
    ("backend", "expected"), [("--rdzv_backend=c10d", False), ("--rdzv_backend=static", True), ("--nproc=2", True)]
)
def test_agents_of_a_dynamic_rendezvous_meet_anew(backend: str, expected: bool) -> None:
    assert (("RESTART004", "warning") in said(VOLCANO.format(backend))) is expected


def test_agents_that_end_for_good_do_not_meet_anew() -> None:
    worker = VOLCANO.format("--rdzv_backend=c10d").partition("  - name: rank")[2].replace("OnFailure", "Never")
    text = VOLCANO.format("--rdzv_backend=c10d") + "  - name: worker" + worker
    assert ("RESTART004", "warning") in said(text)


@pytest.mark.parametrize(
    "left_out",
    ["      .\n      .\n", "  :\n", "      (other fields omitted)\n", "      and so on\n", "      <- snipped ->\n"],
)
def test_what_was_left_out_in_words_or_down_the_page(left_out: str) -> None:
    assert said(POD + left_out) == [("YAML001", "warning")]


@pytest.mark.parametrize(
    "slip", ["EOF\n", "cp omitted:a b\n", "import torch\n", "<<<<<<< HEAD\n", "      command: [a # omitted\n"]
)
def test_a_slip_of_a_manifest_stays_an_error(slip: str) -> None:
    assert said(POD + slip) == [("YAML001", "error")]


@pytest.mark.parametrize("around", ["%%writefile pod.yaml\n", "--- a/pod.yaml\n+++ b/pod.yaml\n@@ -1 +1 @@\n"])
def test_a_notebooks_cell_and_a_difference_are_no_manifests(around: str) -> None:
    assert said(around + POD) == [("YAML001", "warning")]
