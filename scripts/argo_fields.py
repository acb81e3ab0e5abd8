"""Write workflows/engine/validation/fields.json: a Workflow's fields and their types, as Argo's decoder knows them.

    python scripts/argo_fields.py api/jsonschema/schema.json    (of Argo's own repository, at the tag of VERSION)

A type is ``str``, ``bool``, ``int``, ``number``, ``scalar`` (Argo's AnyString), ``whole`` (a number or a text),
``quantity``, ``time``, ``any``, ``map``, a name of the table, ``[T]`` (a list) or ``{T}`` (a map of names to T).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

VERSION = "4.0.7"
TARGET = Path(__file__).resolve().parents[1] / "workflows/engine/validation/fields.json"
ROOTS = ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate")
ARGO = "io.argoproj.workflow.v1alpha1."
PLAIN = {"IntOrString": "whole", "Quantity": "quantity", "Time": "time", "Item": "any", "Amount": "number"}
PLAIN |= {"FieldsV1": "map", "Plugin": "map"}
OVERRIDES = {
    ("Parameter", "value"): "scalar", ("Parameter", "default"): "scalar", ("Parameter", "enum"): "[scalar]",
    ("Parameter", "description"): "scalar", ("ValueFrom", "default"): "scalar",
    ("Workflow", "status"): "map",
}  # fmt: skip
"""What the schema calls a string and the decoder takes from any plain value; what only the cluster writes."""


def main(schema: Path) -> None:
    """Write the file."""
    definitions = json.loads(schema.read_text())["definitions"]
    types: dict[str, dict[str, str]] = {}
    names: dict[str, str] = {}
    waiting = [ARGO + root for root in ROOTS]

    def named(full: str) -> str:
        short = full.rsplit(".", 1)[-1]
        if full not in names:
            taken = short in names.values()
            names[full] = f"Core{short}" if taken or (not full.startswith(ARGO) and short == "HTTPHeader") else short
            waiting.append(full)
        return names[full]

    def type_of(schema: dict[str, Any]) -> str:
        if "$ref" in schema:
            full = schema["$ref"].rsplit("/", 1)[-1]
            short = full.rsplit(".", 1)[-1]
            if short in PLAIN:
                return PLAIN[short]
            below = definitions[full]
            return type_of(below) if below.get("type") == "array" else named(full)
        if schema.get("type") == "array":
            return f"[{type_of(schema['items'])}]"
        if schema.get("type") == "object":
            return "{" + type_of(schema["additionalProperties"]) + "}" if "additionalProperties" in schema else "map"
        return {"string": "str", "boolean": "bool", "integer": "int"}.get(str(schema.get("type")), "any")

    while waiting:
        full = waiting.pop()
        short = named(full)
        if short in types:
            continue
        fields = definitions[full].get("properties", {})
        types[short] = {key: OVERRIDES.get((short, key)) or type_of(below) for key, below in sorted(fields.items())}
    lines = [f"{json.dumps(name)}: {json.dumps(fields)}" for name, fields in sorted(types.items())]
    body = ",\n".join(lines)
    TARGET.write_text(f'{{"version": "{VERSION}", "types": {{\n{body}\n}}}}\n')


if __name__ == "__main__":
    main(Path(sys.argv[1]))
