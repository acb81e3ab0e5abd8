"""Every order of several programs' store requests, counted over states.

A program is real code that talks to a store. Given the answers it got so far it always asks the same next: so a
program's state is that list of answers, and the state of all is (objects, each program's state). States are visited
breadth first, once each; the number of ways into a state is carried along, so schedules are counted exactly though
nobody walks them one by one. A program that is killed is one that is not chosen any more: since every state is judged,
not only the last ones, kills need no schedules of their own.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.models.requests import (
    CHANGES,
    GATE,
    LOST,
    AnsweringStore,
    Next,
    Program,
    Request,
    Told,
    one_clock,
    parsing_once,
    serve,
)

Objects = Mapping[str, bytes]
Answers = tuple[Any, ...]
Promises = tuple[tuple[Any, ...], ...]
Judge = Callable[[Objects, Promises], str]
"""(what lies in the store, what one program was promised) -> "" or what is broken."""
ChangeJudge = Callable[[Objects, Objects, Request, int], str]
"""(before, after, the request, which program) -> "" or what is broken."""

GIVEN_UP, REPEATED, LATE = "given up", "repeated", "late"
"""How an answer is lost. Given up: the request took effect, the client hears an error. Repeated: the client asked
again and hears that the key exists. Late: the client hears an error, the request arrives at any later time."""


@dataclass(frozen=True)
class Local:
    """One program after some answers."""

    gang: int
    since: Any
    """Where it last marked its state, None: its beginning; ``answers`` are those it got since."""
    drawn: int
    """Nonces it drew before ``since``."""
    answers: tuple[Any, ...]
    request: Request | None
    """What it asks next; None: it ended."""
    promised_before: Promises
    promised: Promises
    lost: bool
    """It used up its lost answer."""


@dataclass
class Found:
    """What an exploration found."""

    schedules: int = 0
    broken: int = 0
    """Schedules with a broken promise somewhere on their way."""
    states: int = 0
    requests: int = 0
    """Of the longest schedule."""
    why: str = ""
    """The first broken promise."""


class Explorer:
    """One exploration; ``start``: what lies in the store before."""

    def __init__(
        self,
        programs: Sequence[Program],
        judge: Judge,
        *,
        start: Objects | None = None,
        losses: frozenset[str] = frozenset(),
        decisive: bool = False,
        on_change: ChangeJudge | None = None,
    ) -> None:
        """``decisive``: others come between only where a program asks for the gate, not before every request."""
        self.programs, self.judge, self.losses, self.decisive = programs, judge, losses, decisive
        self.on_change = on_change
        self._locals: list[Local] = []
        self._children: dict[tuple[int, Any, bool], int] = {}
        self._known: dict[Any, int] = {}
        self._contents: list[tuple[dict[str, bytes], tuple[Request, ...]]] = []
        self._content_ids: dict[Any, int] = {}
        self._served: dict[tuple[int, Request], tuple[int, Any]] = {}
        self._moves: dict[tuple[int, int], tuple[tuple[int, int, str], ...]] = {}
        self._judged: dict[tuple[int, Promises], str] = {}
        self._first = [self._local(gang, None, 0, (), (), False) for gang in range(len(programs))]
        self._start = self._content(dict(start or {}), ())

    # ---- one program

    def _local(self, gang: int, since: Any, drawn: int, answers: Answers, promised: Promises, lost: bool) -> int:
        store = AnsweringStore(answers)
        request = None
        with one_clock(gang, drawn) as counter:
            told = Told(store, counter, list(promised))
            try:
                self.programs[gang](store, told, since)
            except Next as asked:
                request = asked.request
        before, promised = promised, tuple(told.acknowledged)
        if request is None:
            since, drawn, answers, before = None, 0, (), promised
        elif told.state_at == len(answers):
            since, drawn, answers, before = told.state, told.state_drawn, (), promised
        past = (told.turn, promised) if told.turn_at == len(answers) and request else answers
        key = (gang, since, drawn, past, before, lost, request is None)
        if key not in self._known:
            self._known[key] = len(self._locals)
            self._locals.append(Local(gang, since, drawn, answers, request, before, promised, lost))
        return self._known[key]

    def _child(self, local: int, answer: Any, *, lost: bool = False) -> int:
        key = (local, answer, lost)
        if key not in self._children:
            now = self._locals[local]
            answers = (*now.answers, answer)
            after = self._local(now.gang, now.since, now.drawn, answers, now.promised_before, now.lost or lost)
            self._children[key] = after
        return self._children[key]

    # ---- the store

    def _content(self, objects: dict[str, bytes], late: tuple[Request, ...]) -> int:
        key = (frozenset(objects.items()), late)
        if key not in self._content_ids:
            self._content_ids[key] = len(self._contents)
            self._contents.append((objects, late))
        return self._content_ids[key]

    def _serve(self, content: int, request: Request) -> tuple[int, Any]:
        if (content, request) not in self._served:
            objects, late = self._contents[content]
            after, answer = serve(objects, request)
            self._served[content, request] = (content if after is objects else self._content(after, late), answer)
        return self._served[content, request]

    # ---- one move of one program

    def moves(self, content: int, local: int) -> tuple[tuple[int, int, str], ...]:
        """(store, program, what the change broke) after each thing that can happen next to this program."""
        key = (content, local)
        if key not in self._moves:
            request = self._locals[local].request
            assert request is not None
            found = self._answered(content, local, request)
            if self.decisive:
                found = [end for move in found for end in self._to_gate(*move)]
            self._moves[key] = tuple(found)
        return self._moves[key]

    def _to_gate(self, content: int, local: int, harm: str) -> list[tuple[int, int, str]]:
        request = self._locals[local].request
        if request is None or request.verb == GATE:
            return [(content, local, harm)]
        found = self._answered(content, local, request)
        return [end for move in found for end in self._to_gate(move[0], move[1], harm or move[2])]

    def _answered(self, content: int, local: int, request: Request) -> list[tuple[int, int, str]]:
        after, answer = self._serve(content, request)
        gang = self._locals[local].gang
        harm = self._changed(content, after, request, gang)
        found = [(after, self._child(local, answer), harm)]
        if request.verb not in CHANGES or self._locals[local].lost:
            return found
        if GIVEN_UP in self.losses:
            found.append((after, self._child(local, LOST, lost=True), harm))
        if REPEATED in self.losses and answer is True:
            found.append((after, self._child(local, False, lost=True), harm))
        if LATE in self.losses:
            objects, late = self._contents[content]
            floating = self._content(objects, (*late, request))
            found.append((floating, self._child(local, LOST, lost=True), ""))
        return found

    def _changed(self, before: int, after: int, request: Request, gang: int) -> str:
        if before == after or self.on_change is None:
            return ""
        return self.on_change(self._contents[before][0], self._contents[after][0], request, gang)

    def landings(self, content: int) -> list[tuple[int, str]]:
        """The store after each late request that can arrive next."""
        objects, late = self._contents[content]
        found = []
        for number, request in enumerate(late):
            without = self._content(objects, late[:number] + late[number + 1 :])
            after, _ = self._serve(without, request)
            found.append((after, self._changed(without, after, request, -1)))
        return found

    # ---- all of them

    def explore(self) -> Found:
        """Visit every state."""
        found = Found()
        layer: dict[tuple[int, ...], int] = {(0, self._start, *self._first): 1}
        # Nothing here is garbage before the end: looking for it would take half the time.
        gc.disable()
        try:
            with parsing_once():
                while layer:
                    found.states += len(layer)
                    layer = self._step(layer, found)
                    found.requests += bool(layer)
        finally:
            gc.enable()
        return found

    def _step(self, layer: dict[tuple[int, ...], int], found: Found) -> dict[tuple[int, ...], int]:
        after: dict[tuple[int, ...], int] = {}
        moves, locals_, known = self.moves, self._locals, self._moves
        for state, ways in layer.items():
            bad, content, *gangs = state
            ended = True
            for at, local in enumerate(gangs, 2):
                if locals_[local].request is None:
                    continue
                ended = False
                for move in known.get((content, local)) or moves(content, local):
                    new = (bad, move[0], *state[2:at], move[1], *state[at + 1 :])
                    if not bad and (move[0] != content or move[1] != local) and self._is_broken(new, move[2], found):
                        new = (1, *new[1:])
                    after[new] = after.get(new, 0) + ways
            if self._contents[content][1]:
                ended = False
                for landed, harm in self.landings(content):
                    new = (bad, landed, *gangs)
                    if not bad and self._is_broken(new, harm, found):
                        new = (1, *new[1:])
                    after[new] = after.get(new, 0) + ways
            if ended:
                found.schedules += ways
                found.broken += ways * bad
        return after

    def _is_broken(self, state: tuple[int, ...], harm: str, found: Found) -> bool:
        content = state[1]
        for local in state[2:]:
            if harm:
                break
            key = (content, self._locals[local].promised)
            if key not in self._judged:
                self._judged[key] = self.judge(self._contents[content][0], key[1])
            harm = self._judged[key]
        found.why = found.why or harm
        return bool(harm)
