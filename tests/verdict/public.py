"""The public logs of the .toml files beside this one, and how a reading of them is scored."""

from __future__ import annotations

import hashlib
import json
import tomllib
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.verdict.line import Line
from argosy.workflows.diagnosis.verdict import Diagnosis, diagnose


def _logs(name: str) -> list[dict[str, Any]]:
    return list(tomllib.loads(Path(__file__).with_name(name).read_text())["log"])


_LATER = (
    *("third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"),
    *("tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth"),
    *(
        "seventeenth",
        "eighteenth",
        "nineteenth",
        "twentieth",
        "twentyfirst",
        "twentysecond",
        "twentythird",
        "twentyfourth",
        "twentyfifth",
        "twentysixth",
        "twentyseventh",
        "twentyeighth",
    ),
)
LOGS = [
    *_logs("public.toml"),
    *({**log, "gathered": "second"} for log in _logs("second.toml")),
    *({**log, "half": name} for name in _LATER for log in _logs(f"{name}.toml")),
]
_STOPS = (70, 73, 74, 77, 78)


def half_of(log: dict[str, Any]) -> str:
    """``build`` or ``measured``, for ever the same; what was gathered when there were rules says what it is."""
    if "half" in log:
        return str(log["half"])
    half = "build" if zlib.crc32(log["source"].encode()) % 2 else "measured"
    return f"second {half}" if "gathered" in log else half


def digest(logs: list[dict[str, Any]]) -> str:
    """SHA-256 of what is learned from logs (scripts/learn_words.py)."""
    said = [[log["source"], log["cause"], log["say"]] for log in logs]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


@dataclass(frozen=True)
class Score:
    """Of one log: whether the cause, the cause or runner-up, and the action are right; whether it does harm."""

    log: dict[str, Any]
    verdict: Diagnosis
    cause: str
    first: bool
    either: bool
    action: bool
    harmful: bool


def score(log: dict[str, Any]) -> Score:
    found = diagnose([[Line(log["source"], number, text) for number, text in enumerate(log["say"].split("\n"), 1)]])
    wanted = log.get("code", int(Cause(log["cause"]).exit_code))
    action = _action(found.root.exit_code) == _action(wanted)
    stopped = _action(wanted) == "again" and _action(found.root.exit_code) in ("stop", "person")
    return Score(
        log,
        found,
        str(found.root.cause),
        found.root.cause == log["cause"],
        log["cause"] in (found.root.cause, found.runner_up.cause if found.runner_up else None),
        action,
        not action and (stopped or (wanted == 78 and _action(found.root.exit_code) == "again")),
    )


def _action(code: int) -> str:
    return {72: "back", 77: "person"}.get(code, "stop" if code in _STOPS else "again")
