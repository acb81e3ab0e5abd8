"""What rank 0's writer and a node's leader decide, record by record: no process, no socket, a clock of our own."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from argosy.steps.checkpoint.manifest import PartRef
from argosy.steps.checkpointer.coordinator import Agreed, Coordinator
from argosy.steps.checkpointer.lines import Lines
from argosy.steps.checkpointer.node_part import NodePart

REF = {"key": "data/x/parts/000000.json", "size": 1, "sha256": "0" * 64, "total_bytes": 1}


class Told:
    """A coordinator or a leader of ``ranks``, and all it says."""

    def __init__(self) -> None:
        self.now = 0.0
        self.said: list[dict[str, Any]] = []
        self.committed: list[int] = []
        self.parts: list[tuple[str, int]] = []

    def coordinator(self, ranks: int) -> Coordinator:
        def commit(agreed: Agreed) -> dict[str, Any]:
            self.committed.append(agreed.number)
            return {"saved": agreed.name}

        return Coordinator(ranks, 30.0, commit=commit, work=work, announce=self.said.append, clock=lambda: self.now)

    def leader(self, *ranks: int) -> NodePart:
        def store(name: str, files: Any) -> PartRef:
            self.parts.append((name, len(files)))
            return PartRef(**REF)

        return NodePart(ranks, 30.0, store=store, work=work, tell=self.said.append, clock=lambda: self.now)

    def failures(self) -> list[tuple[str, str]]:
        return [(said["failure"]["cause"], said["failure"]["message"]) for said in self.said if "failure" in said]


def work(action: Callable[[], Any], then: Callable[[Any, BaseException | None], None]) -> None:
    then(action(), None)


def part(number: int, *ranks: int, **claim: Any) -> dict[str, Any]:
    told = {"step": 10 * number, "final": False, "fingerprint": "f", **claim}
    claims = [[told["step"], told["final"], told["fingerprint"], ranks[0]]]
    return {"is": "part", "number": number, "name": f"save-{number}", "ranks": list(ranks), "claims": claims,
            "stall": 0.1, "part": REF}  # fmt: skip


def stored(number: int, rank: int, **given: Any) -> dict[str, Any]:
    file = {"path": f"{rank}", "key": f"k/{rank}", "size": 1, "sha256": "0" * 64, "modified_ns": 0}
    return {"is": "stored", "number": number, "rank": rank, "name": f"save-{number}", "step": 10, "final": False,
            "fingerprint": "f", "stall": 0.1, "files": [file], **given}  # fmt: skip


def test_nothing_is_committed_before_every_node_has_stored() -> None:
    told = Told()
    coordinator = told.coordinator(4)
    coordinator.receive(part(1, 0, 1))
    coordinator.receive(part(1, 0, 1))  # twice is not two nodes
    assert told.said == told.committed == []
    coordinator.receive(part(1, 2, 3))
    assert told.committed == [1]
    assert told.said == [{"is": "outcome", "number": 1, "saved": "save-1"}]
    assert not coordinator.waiting


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"fingerprint": "g"}, "names, types or shapes"),
        ({"step": 11}, "rank 2 step 11"),
        ({"final": True}, "final True"),
    ],
)
def test_ranks_that_differ_commit_nothing(claim: dict[str, Any], words: str) -> None:
    told = Told()
    coordinator = told.coordinator(4)
    coordinator.receive(part(1, 0, 1))
    coordinator.receive(part(1, 2, 3, **claim))
    assert told.committed == []
    assert [(cause, words in text) for cause, text in told.failures()] == [("user_exception", True)]


def test_after_a_failure_nothing_is_committed_any_more() -> None:
    """A rank that has not heard of it saves again; a save that the others have given up must not come to be."""
    told = Told()
    coordinator = told.coordinator(2)
    coordinator.receive(part(1, 0))
    reason = {"cause": "store_unavailable", "message": "full", "code": 75}
    coordinator.receive({"is": "refused", "number": 1, "rank": 1, "failure": reason})
    coordinator.receive(part(1, 1))
    for rank in (0, 1):
        coordinator.receive(part(1, rank))
        coordinator.receive(part(2, rank))
    coordinator.receive({"is": "refused", "number": 2, "rank": 0, "failure": {**reason, "message": "later"}})
    assert told.committed == []
    assert {text for _, text in told.failures()} == {"full"}, "everybody is told the first reason"


def test_a_node_that_is_late_ends_the_save_by_name() -> None:
    told = Told()
    coordinator = told.coordinator(4)
    coordinator.receive(part(1, 0, 1))
    told.now = 29.0
    coordinator.tick()
    assert told.said == []
    told.now = 31.0
    coordinator.tick()
    assert told.failures() == [("hang", "ranks 2, 3 did not store save 1 within 30 s of the first that did")]
    coordinator.tick()
    assert len(told.said) == 1


@pytest.mark.parametrize("first", [True, False])
def test_a_node_that_left_ends_the_save_that_lacks_it(first: bool) -> None:
    told = Told()
    coordinator = told.coordinator(3)
    left = {"is": "left", "ranks": [1], "why": "its writer ended"}
    records = [left, part(1, 0)] if first else [part(1, 0), left]
    for record in records:
        coordinator.receive(record)
    assert [cause for cause, _ in told.failures()] == ["peer_lost"]
    assert "rank 1 left before save 1 was stored: its writer ended" in told.failures()[0][1]

    # Who leaves after its bytes are stored is not missed.
    again = Told()
    coordinator = again.coordinator(2)
    coordinator.receive(part(1, 1))
    coordinator.receive(left)
    coordinator.receive(part(1, 0))
    assert again.committed == [1]


def test_a_leader_writes_its_part_when_all_its_ranks_have_stored() -> None:
    told = Told()
    leader = told.leader(2, 3)
    leader.receive(stored(1, 2))
    leader.receive(stored(1, 2))
    leader.receive(stored(2, 3))  # another save
    assert told.parts == told.said == []
    leader.receive(stored(1, 3))
    assert told.parts == [("save-1", 2)]
    assert [(said["ranks"], said["part"]["key"]) for said in told.said] == [([2, 3], REF["key"])]


def test_a_leader_names_who_is_late_and_writes_no_part_of_ranks_that_differ() -> None:
    told = Told()
    leader = told.leader(2, 3)
    leader.receive(stored(1, 2))
    leader.receive(stored(1, 3, fingerprint="g"))
    assert told.parts == []
    assert [len(said["claims"]) for said in told.said] == [2]
    leader.receive(stored(2, 2))
    told.now = 31.0
    leader.tick()
    leader.tick()
    assert told.failures() == [("hang", "rank 3 did not store save 2 within 30 s of the first of the node that did")]


def test_a_record_and_its_bytes_arrive_whole_or_not_yet() -> None:
    ours, theirs = socket.socketpair()
    sender, receiver = Lines(ours), Lines(theirs)
    sender.send({"is": "x"}, [b"abc", b"", b"de\nf"])
    raw = theirs.recv(4096)
    for at in range(1, len(raw)):
        ours.send(raw[:at])
        assert list(receiver.read()) == [], at
        ours.send(raw[at:])
        assert list(receiver.read()) == [({"is": "x"}, [b"abc", b"", b"de\nf"])], at
    ours.send(b"no JSON\n" + raw)
    assert list(receiver.read()) == []
    assert receiver.ended, "after garbage nothing is believed"
    sender.close()
    receiver.close()
