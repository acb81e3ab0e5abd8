"""What was found, kept line by line so that the next call goes on, and shown as one JSON file and one table."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".gpu"
"""Ignored by git: results, and what is carried to a machine without a network."""


def commit() -> str:
    """The commit under test, also in a copy without git's folder or with another (scripts/gpu_wheels.py left it)."""
    if told := os.environ.get("GPU_COMMIT"):
        return told
    if (ROOT / ".git").exists():
        head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        changed = subprocess.run(
            ["git", "status", "--porcelain", "steps", "workflows", "argosy", "examples", "tests/gpu"],
            cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip
        if head.returncode == 0:
            return head.stdout.strip() + ("+" if changed.stdout.strip() else "")
    noted = KEPT / "commit"
    return noted.read_text().strip() if noted.exists() else "unknown"


class Record:
    """Of one kind of device, ``cuda`` or ``cpu``, in ``folder``."""

    def __init__(self, device: str, folder: Path = KEPT) -> None:
        self.device, self.folder = device, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.lines = folder / f"{device}.jsonl"
        self.commit = commit()
        self._adding = threading.Lock()

    def entries(self) -> list[dict[str, Any]]:
        """Everything so far; a line that a kill cut off is passed over."""
        found = []
        for line in self.lines.read_text().splitlines() if self.lines.exists() else []:
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found

    def add(self, entry: dict[str, Any]) -> None:
        """Keep one, here and where the machine's lender looks for files ($OUT)."""
        with self._adding:
            with self.lines.open("a") as target:
                target.write(json.dumps({**entry, "commit": self.commit}) + "\n")
            self.write()

    def state(self, part: str, case: str) -> str:
        """How the case's newest run ended; "": it has not run."""
        states = [e["state"] for e in self.entries() if "state" in e and (e["part"], e["case"]) == (part, case)]
        return str(states[-1]) if states else ""

    def figures(self, part: str, case: str = "") -> list[dict[str, Any]]:
        """Of the newest run of each case of the part."""
        newest: dict[str, list[dict[str, Any]]] = {}
        for entry in self.entries():
            if entry.get("part") != part or case not in ("", entry.get("case")):
                continue
            if entry.get("begins"):
                newest[entry["case"]] = []
            elif "what" in entry:
                newest.setdefault(entry["case"], []).append(entry)
        return [figure for figures in newest.values() for figure in figures]

    def facts(self) -> dict[str, Any]:
        """Of the machine: driver, torch, NCCL …"""
        return {figure["what"]: figure["value"] for figure in self.figures("machine", "facts")}

    def write(self) -> None:
        """``gpu.json`` and ``gpu.md`` (``cpu.…`` for a stand-in), and copies of all below $OUT where that is set."""
        name = "gpu" if self.device == "cuda" else "cpu"
        whole = {"facts": self.facts(), "entries": self.entries()}
        (self.folder / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n")
        (self.folder / f"{name}.md").write_text(self._table())
        if out := os.environ.get("OUT"):
            for path in self.folder.iterdir():
                if path.is_file() and path.suffix in (".json", ".jsonl", ".md", ".log"):
                    shutil.copy2(path, out)

    def _table(self) -> str:
        facts = {**self.facts(), "commit": self.commit}
        lines = ["# What a GPU showed" if self.device == "cuda" else "# The GPU suite's stand-in on CPUs", ""]
        if self.device == "cpu":
            lines += ["Small models on CPUs: proves that the suite runs, and nothing of a GPU.", ""]
        lines += [f"- {name}: {value}" for name, value in facts.items()]
        lines += ["", "| part | case | what | figure | bar | |", "|---|---|---|---|---|---|"]
        ends: dict[tuple[str, str], dict[str, Any]] = {
            (e["part"], e["case"]): e for e in self.entries() if "state" in e
        }  # fmt: skip
        for (part, case), end in ends.items():
            for figure in self.figures(part, case):
                held = {True: "pass", False: "**MISS**"}.get(figure.get("held"), "")
                value = f"{_shown(figure['value'])} {figure.get('unit', '')}".strip()
                lines.append(_row(part, case, figure["what"], value, figure.get("bar", ""), held))
            if end["state"] != "ran":
                lines.append(_row(part, case, f"**{end['state']}**", end.get("why", ""), "", ""))
        return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _row(*cells: str) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ")[:300] for cell in cells) + " |"
