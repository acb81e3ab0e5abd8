"""The local engine against what a real Argo answered to the same workflows (``answers.json``, see ``record.py``)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from argosy.workflows.engine.pod_rules import can_isolate
from tests.agreement import answer
from tests.agreement.corpus import SEEDS, every, names
from tests.agreement.record import load
from tests.agreement.table import heard_here, judged

REFUSED = {
    "container-set": "containerSet", "daemon": "daemon", "daemon-dag": "daemon",
    "expression-jsonpath-filter": "jsonpath", "inline-in-a-template-ref-twice": "inline",
    "named-hooks": "hooks.done",
    "expression-pattern-of-another-language": "error parsing regexp", "expression-wrong-escape": "invalid char escape",
    **dict.fromkeys(("expression-of-a-tag", "expression-of-a-tag-in-a-step"), "unexpected character"),
    "braces-that-nothing-closes": "that nothing closes",
    "suspend-fraction": "suspend.duration",
    **dict.fromkeys(("set-fails", "set-of-a-step", "set-main-fails", "set-retried", "set-in-a-retry"), "containerSet"),
    **dict.fromkeys(("daemon-answers", "daemon-then-failure", "daemon-last"), "daemon"),
    **dict.fromkeys(("daemon-never-ready", "daemon-nested"), "daemon"),
}  # fmt: skip
"""What Argo runs and the local engine refuses before anything starts, and the word by which it says so."""

FURTHER = [f"random-{seed}" for seed in SEEDS if seed > 40]
"""So many more of the random ones are in `make prove SUITE=variants`."""

Heard = dict[str, answer.Answer]


@pytest.fixture(scope="module")
def heard(request: pytest.FixtureRequest) -> Heard:
    """What the engine makes of the chosen cases: they mostly wait, so several run at once.

    All end before the first test looks: pytest writes into the environment that the engine's threads read.
    """
    params = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    chosen = [each["name"] for each in params if each.get("name") in every()]
    with ThreadPoolExecutor(8) as pool:
        return dict(zip(chosen, pool.map(lambda name: heard_here(every()[name]), chosen), strict=True))


def test_every_case_has_been_answered() -> None:
    assert set(load()) == set(every())
    assert names() == sorted(every())
    assert sum(not name.startswith("random-") for name in every()) >= 60
    assert sum(name.startswith("random-") for name in every()) >= 100


@pytest.mark.skipif(not can_isolate(), reason="this machine forbids mount namespaces, which foreign containers need")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.variant if each in FURTHER else []) for each in names()]
)
def test_the_engine_does_what_argo_did_or_refuses_by_name(name: str, heard: Heard) -> None:
    ours = heard[name]
    verdict, found = judged(load()[name], ours)
    assert verdict == ("refused" if name in REFUSED else "agree"), "\n".join(found)
    if verdict == "refused":
        assert REFUSED[name] in ours["message"]
