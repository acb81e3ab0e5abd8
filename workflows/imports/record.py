"""An import as one JSON object."""

from __future__ import annotations

from typing import Any

from argosy.workflows.imports.account import Fate
from argosy.workflows.imports.convert import Imported
from argosy.workflows.imports.masking import masked


def record(imported: Imported, output: str = "") -> dict[str, Any]:
    """Kind, name, the run as TOML, and what became of each value."""
    entries = [
        {
            "fate": entry.fate.value,
            "path": entry.node.path,
            "part": masked(entry.part),
            "file": entry.node.origin.file,
            "document": imported.account.document_of(entry),
            "line": entry.node.line,
            "into": entry.into,
            "why": masked(entry.why),
            "advice": entry.advice,
        }
        for fate in Fate
        for entry in imported.account.of(fate)
    ]
    return {
        "kind": imported.kind,
        "name": imported.name,
        "output": output,
        "toml": imported.toml,
        "account": entries,
    }
