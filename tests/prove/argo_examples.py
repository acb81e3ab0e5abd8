"""Argo's own published examples on a real Argo and on the local engine, compared node by node.

Needs a cluster (``make cluster``, else one is started), and the examples: see ``tests/agreement/published.py``.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.workflows.engine.api import RunOptions, check
from argosy.workflows.engine.reading import read_documents
from argosy.workflows.engine.support import BY_ARGO, BY_US
from tests.agreement.answer import Answer
from tests.agreement.corpus import Case
from tests.agreement.published import CHANGED, cases, folder
from tests.agreement.record import ARGO, NAMESPACE, Questions, ask
from tests.agreement.table import heard_here, judged
from tests.cluster.cluster import Cluster
from tests.cluster.instance import NODE_NAMES
from tests.prove.record import Record

COUNT = 1000
AT_ONCE = 10
BATCH = 40
PATIENCE = 60.0
BY = ["verdict", "phase", "told"]
COLUMNS = [*BY, "nodes", "held", "example"]
ENDLESS = ("forever",)
"""Not run."""
_CLAIMS = 8
"""How many volumes there are for them."""


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The examples that are not recorded yet; 0 when both agree on all but what the engine refuses to run."""
    record, deadline = Record("argo-examples", seed), time.monotonic() + minutes * 60
    done = {*ENDLESS, *(line["example"] for line in record.cases())}
    left = {name: case for name, case in list(cases(seed).items())[:count] if name not in done}
    refusals = {name: _refusal(case) for name, case in left.items()}
    for name, refusal in refusals.items():
        if _is_ours(refusal):
            record.add(_line(name, None, {"phase": "refused", "message": refusal, "nodes": {}}))
    if asked := [case for name, case in left.items() if not _is_ours(refusals[name])]:
        _ask(record, asked, deadline)
    title = f"Argo's own examples, on Argo {ARGO} and on the local engine"
    return record.told(title, COLUMNS, count=0, note=_note(record), by=BY)


def _refusal(case: Case) -> str:
    try:
        check(case.yaml(), RunOptions())
    except InputError as error:
        return str(error)
    return ""


def _is_ours(refusal: str) -> bool:
    """Whether Argo need not be asked: it takes the example, the engine says that it cannot run it."""
    return BY_US in refusal and BY_ARGO not in refusal


def _ask(record: Record, asked: list[Case], deadline: float) -> None:
    cluster = Cluster()
    with cluster.lent():
        questions = Questions(cluster)
        cluster.api.apply((*_volumes(), *(each for case in asked for each in case.others)), NAMESPACE)
        for at in range(0, len(asked), BATCH):
            if time.monotonic() > deadline:
                print("run the same command to go on", flush=True)
                return
            batch = asked[at : at + BATCH]
            # Several need the same templates: none of them is taken away with the first that has ended.
            bare = [replace(case, others=()) for case in batch]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                ours = {case.name: pool.submit(heard_here, case) for case in batch}
                for name, theirs in ask(questions, bare, at_once=AT_ONCE, patience=PATIENCE):
                    line = _line(name, theirs, ours[name].result())
                    record.add(line)
                    print(line, flush=True)


def _volumes() -> Iterator[dict[str, Any]]:
    """What claims are bound to, all on one node, and the claim that the examples say is there."""
    place = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE_NAMES[0]]}]}
    for number in range(_CLAIMS):
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": f"/tmp/argo-examples/{number}", "type": "DirectoryOrCreate"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [place]}},
        }
        yield {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"examples-{number}"}, "spec": spec}
    yield from read_documents((folder() / "testvolume.yaml").read_bytes(), "testvolume.yaml")


def _line(name: str, theirs: Answer | None, ours: Answer) -> dict[str, Any]:
    if theirs is None:
        told = ", ".join(sorted({_class(each) for each in ours["message"].splitlines()[1:]}))
        return {"example": name, "verdict": "refused", "phase": "", "nodes": "", "told": told, "held": True}
    verdict, found = judged(theirs, ours)
    return {
        "example": name,
        "verdict": verdict,
        "phase": theirs["phase"],
        "nodes": len(theirs["nodes"]),
        "told": " ".join("; ".join(found).replace("|", "\\|").split())[:600] if verdict != "agree" else "",
        "held": verdict == "agree",
    }


def _class(problem: str) -> str:
    """``spec.templates[0].resource: needs a cluster`` -> ``resource``; the kind of what has no field of its own."""
    path, _, reason = problem.strip().partition(": ")
    if re.fullmatch(r"(\S+\.)?templates\.[^.]+", path):
        return "expression" if reason[:1] in "'\"" else reason.split()[0]
    return re.sub(r"\[\d+\]", "", path).rpartition(".")[2]


def _note(record: Record) -> str:
    lines = record.cases()
    counts = Counter(line["verdict"] for line in lines)
    why = Counter(each for line in lines if line["verdict"] == "refused" for each in line["told"].split(", "))
    return (
        f"{CHANGED} {', '.join(f'{count} {verdict}' for verdict, count in sorted(counts.items()))}; "
        f"not run: {', '.join(ENDLESS)}, which never ends. Refused before anything starts, by field: "
        f"{', '.join(f'{field} {count}' for field, count in why.most_common())}."
    )
