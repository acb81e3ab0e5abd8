"""Write docs/engine-support.md: what the local engine runs, ignores and refuses, from the engine's own tables.

python scripts/engine_support.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from argosy.workflows.engine import schema
from argosy.workflows.engine.expression.functions import NAMES
from argosy.workflows.engine.expression.predicates import PREDICATES
from argosy.workflows.engine.schema import Ignore, Refuse
from argosy.workflows.engine.validation.decoding import argo_version, fields_of

TARGET = Path(__file__).resolve().parents[1] / "docs" / "engine-support.md"
LATER = "not built in"
ROWS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("the workflow's `spec`", "WorkflowSpec", schema.SPEC),
    ("`templateDefaults`", "Template", schema.DEFAULTS),
    ("a template", "Template", schema.TEMPLATE),
    ("`container`", "Container", schema.CONTAINER),
    ("`script`", "ScriptTemplate", schema.SCRIPT),
    ("`dag`", "DAGTemplate", schema.DAG),
    ("a task of `dag`", "DAGTask", schema.TASK),
    ("a step of `steps`", "WorkflowStep", schema.STEP),
    ("`withSequence`", "Sequence", schema.SEQUENCE),
    ("a hook", "LifecycleHook", schema.HOOK),
    ("`retryStrategy`", "RetryStrategy", schema.RETRY),
    ("`retryStrategy.backoff`", "Backoff", schema.BACKOFF),
    ("`synchronization`", "Synchronization", schema.SYNCHRONIZATION),
    ("a mutex", "Mutex", schema.MUTEX),
    ("a semaphore", "SemaphoreRef", schema.SEMAPHORE),
    ("a parameter", "Parameter", schema.PARAMETER),
    ("`valueFrom` of a parameter", "ValueFrom", schema.VALUE_FROM),
    ("an artifact", "Artifact", schema.ARTIFACT),
    ("a variable of `env`", "EnvVarSource", schema.ENV["valueFrom"]),
    ("an entry of `envFrom`", "EnvFromSource", schema.ENV_FROM),
    ("a mount", "VolumeMount", schema.MOUNT),
    ("a volume", "Volume", schema.VOLUME),
)
HEAD = f"""# What the local engine runs

Made by `scripts/engine_support.py` from the engine's own tables; a test sees that it is fresh.

`argosy run` judges a workflow before anything starts and exits with 2 when there is a reason not to start it:

- **Argo refuses it**: an unknown field, a value of the wrong kind, or a rule of Argo's own validator. These are the
  rules of Argo {argo_version()}, held to its `argo lint --offline --strict` by `tests/validation`. Two answers
  differ on purpose: a workflow parameter without a value, and a name or label that Kubernetes does not take, are
  refused here as `argo submit` and the API server do it; `argo lint` lets both pass.
- **The engine cannot run it**: the field stands in the last column below, or a rule under the table says why.

What has no effect on one machine is named in one line when a run starts. Everything else runs as on a cluster:
`tests/agreement` holds the engine, node by node, to what a real Argo 4.0.7 answered to more than 300 workflows.
One thing is done otherwise: where Argo would keep a workflow Running for ever (an argument that is the
output of a failed task), the engine ends it in Error and says so.

| in | runs | has no effect | refused |
|---|---|---|---|
"""
RULES = """
What is not a field of its own:

- **Hooks** other than `exit` are refused.
- **Expressions** (`{{=…}}`, `retryStrategy.expression`, `hooks.exit.expression`) know these functions:
  FUNCTIONS.
  In PREDICATES, `#` is the item. Other functions, and in `jsonpath` what is no name and no number, are refused.
  So are `let`, `|`, `..`, patterns with `\\p{…}` or flags in the middle, and a `{{` that nothing closes beside them.
- **Containers** need a `command`: no image is there whose entry point could be run. Variables from Secrets need
  `ARGOSY_SECRET_NAME_KEY` in the engine's environment; volumes are `emptyDir`, claims, ConfigMaps, optional Secrets.
- **ConfigMaps** stand beside the Workflow, in its YAML or in files of `--templates`; what takes one that is not there
  is refused. As in Argo, a parameter finds only those with the label `workflows.argoproj.io/configmap-type: Parameter`.
- **`inline`** in a WorkflowTemplate may hold no tags: Argo fills them with its validator's stand-ins there.
- **`fromExpression`** belongs to the outputs of `dag` and `steps`; expressions choose artifacts and look at no field.
- **`suspend`** needs a `duration`. `depends: X.Daemoned`, tags in a template's name and a list of no steps are refused.
- **`podSpecPatch`** may set `terminationGracePeriodSeconds` and what has no effect on one machine; one with tags is
  judged when they have values.
"""


def main() -> None:
    """Write the page."""
    TARGET.write_text(page())


def page() -> str:
    """The page as it has to be now."""
    return (
        HEAD
        + "".join(_row(*row) for row in ROWS)
        + RULES.replace("FUNCTIONS", _listed(NAMES)).replace("PREDICATES", _listed(PREDICATES))
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _row(title: str, type_name: str, fields: dict[str, Any]) -> str:
    runs = [key for key, kind in fields.items() if not isinstance(kind, Ignore | Refuse)]
    idle = [(key, kind.reason) for key, kind in fields.items() if isinstance(kind, Ignore)]
    refused = [(key, _short(kind.reason)) for key, kind in fields.items() if isinstance(kind, Refuse)]
    refused += [(key, LATER) for key in fields_of(type_name) if key not in fields]
    cells = (", ".join(f"`{key}`" for key in sorted(runs)), "; ".join(_grouped(idle)), "; ".join(_grouped(refused)))
    return f"| {title} | {' | '.join(cells)} |\n"


def _short(reason: str) -> str:
    return LATER if "not built into" in reason else reason


def _grouped(fields: list[tuple[str, str]]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for key, reason in sorted(fields):
        reasons.setdefault(reason, []).append(f"`{key}`")
    for reason, keys in reasons.items():
        yield f"{', '.join(keys)}: {reason}"


if __name__ == "__main__":
    main()
