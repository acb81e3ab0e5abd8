"""A small random workflow from a seed: conditions, loops, retries, hooks, groups and values, as Argo accepts them."""

from __future__ import annotations

import random
from typing import Any

_STATES = ("Succeeded", "Failed", "Errored", "Skipped", "Omitted")


def random_case(seed: int) -> dict[str, Any]:
    """The body of a case (see ``cases/*.yaml``): a DAG of three to six tasks."""
    return _Dag(random.Random(seed)).body()


class _Dag:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.loops: set[str] = set()
        self.speakers: list[str] = []
        self.above: dict[str, set[str]] = {}
        self.with_depends = chance.random() < 0.75

    def body(self) -> dict[str, Any]:
        names = "abcdef"[: self.chance.randint(3, 6)]
        main: dict[str, Any] = {"dag": {"tasks": [self._task(name, names[:i]) for i, name in enumerate(names)]}}
        if self.chance.random() < 0.3:
            main["dag"]["failFast"] = False
        body: dict[str, Any] = {"main": main, "templates": _templates(self.chance)}
        if self.chance.random() < 0.2:
            body["onExit"] = self.chance.choice(["ok", "bad"])
        return body

    def _task(self, name: str, earlier: str) -> dict[str, Any]:
        chance = self.chance
        task: dict[str, Any] = {"name": name, **self._needs(name, earlier)}
        task |= self._work(name)
        if chance.random() < 0.2:
            task["when"] = self._when(name)
        if chance.random() < 0.15:
            task["hooks"] = {"exit": {"template": chance.choice(["ok", "ok", "bad"])}}
        return task

    def _needs(self, name: str, earlier: str) -> dict[str, Any]:
        chance = self.chance
        parents = sorted(chance.sample(earlier, min(len(earlier), chance.choice([0, 1, 1, 1, 2, 2]))))
        self.above[name] = set(parents).union(*(self.above[each] for each in parents))
        accepts: dict[str, Any] = {}
        if not self.with_depends and chance.random() < 0.3:
            accepts = {"continueOn": {chance.choice(["failed", "error"]): True}}
        if not parents:
            return accepts
        if not self.with_depends:
            return {"dependencies": parents, **accepts}
        terms = [self._term(each) for each in parents]
        text = f" {chance.choice(['&&', '||'])} ".join(terms)
        return {"depends": f"!({text})" if chance.random() < 0.08 else text}

    def _term(self, parent: str) -> str:
        chance = self.chance
        if parent in self.loops and chance.random() < 0.4:
            return f"{parent}.{chance.choice(['AnySucceeded', 'AllFailed'])}"
        if chance.random() < 0.4:
            return parent
        term = f"{parent}.{chance.choice(_STATES)}"
        if chance.random() < 0.3:
            term = f"({term} || {parent}.{chance.choice(_STATES)})"
        return f"!{term}" if chance.random() < 0.15 else term

    def _work(self, name: str) -> dict[str, Any]:
        chance = self.chance
        kind = chance.choice(["ok", "ok", "bad", "bad", "broken", "again", "group", "pair", "loop", "say", "say"])
        if kind == "loop":
            self.loops.add(name)
            codes = [chance.choice([0, 0, 1, 3]) for _ in range(chance.randint(1, 3))]
            argument = {"name": "code", "value": "{{item}}"}
            return {"template": "exit", "withItems": codes, "arguments": {"parameters": [argument]}}
        if kind == "again":
            argument = {"name": "code", "value": str(chance.choice([0, 1, 2, 9]))}
            return {"template": "again", "arguments": {"parameters": [argument]}}
        if kind == "say":
            source = [each for each in self.speakers if each in self.above[name]]
            text = f"{{{{tasks.{chance.choice(source)}.outputs.parameters.said}}}}" if source else name
            self.speakers.append(name)
            return {"template": "say", "arguments": {"parameters": [{"name": "text", "value": text}]}}
        return {"template": kind}

    def _when(self, name: str) -> str:
        above = sorted(self.above[name] - self.loops)
        if above and self.chance.random() < 0.6:
            return f"{{{{tasks.{self.chance.choice(above)}.status}}}} {self.chance.choice(['==', '!='])} Succeeded"
        return self.chance.choice(["true", "false", "1 < 2"])


def _templates(chance: random.Random) -> list[dict[str, Any]]:
    """A template that succeeds at attempt CODE, a DAG and a Steps template."""
    last = chance.choice(["ok", "ok", "bad", "broken"])
    return [
        {
            "name": "again",
            "inputs": {"parameters": [{"name": "code"}]},
            "retryStrategy": {"limit": chance.choice([0, 1, 2])},
            "container": {"command": ["sh", "-c", "test $0 -ge $1", "{{retries}}", "{{inputs.parameters.code}}"]},
        },
        {"name": "group", "dag": {"tasks": [{"name": "x", "template": "ok"},
                                            {"name": "y", "template": last, "depends": "x"}]}},
        {"name": "pair", "steps": [[{"name": "x", "template": "ok"}, {"name": "y", "template": last}],
                                   [{"name": "z", "template": "ok"}]]},
    ]  # fmt: skip
