"""What Argo refuses is refused here, by its rule; what it takes runs here or is named as not built in.

The real verdicts stand in ``recorded.json``; where the real ``argo`` is (PATH, ARGOSY_CLUSTER_BIN, the cluster's cache)
it is asked again. ``ARGOSY_REGENERATE=1 pytest tests/validation`` writes the file anew.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from argosy.steps.contract.errors import InputError
from argosy.workflows.engine.api import RunOptions, check
from argosy.workflows.engine.support import BY_ARGO, BY_US
from tests.validation import argo, cases, mutants

RECORD = Path(__file__).with_name("recorded.json")
NOT_BUILT_IN = {
    "steps: an unknown field deep in a step": "artifacts[0].subpath: not built into the local engine",
    "sequence: neither": "needs count or end",
    "dag: not an expression": "depends: 'a &&': unexpected end",
    "dag: a hook with expression": "hooks.late: not built into the local engine",
    "dag: a hook without expression": "hooks.late: not built into the local engine",
    "hooks: with expression": "hooks.late: not built into the local engine",
    "hooks: exit of an unknown template": "spec.hooks.exit: template reference zz not found",
    "dag: an exit hook without its template": "hooks.exit: template reference zz not found",
    "a reference with a tag": "a tag in a template's name is not built into",
    "steps: empty list": "steps: is empty",
    "no command": "no image is there whose entry point could be run",
    "timeout that is none": "'soon' is not a duration",
    "a map as a value": "is not a text, number or boolean",
    "retry limit that is none": "'many' is not a number",
    "retry expression that is none": "'a ==': unexpected end",
    "an unknown function": "function zz: not supported by the local engine",
    "a broken expression": "'1 +': unexpected end",
    "mounts: no such volume": "no volume is called 'v'",
}


def recorded() -> dict[str, str]:
    found: dict[str, str] = json.loads(RECORD.read_text())["verdicts"] if RECORD.exists() else {}
    return found


def judged(workflow: bytes, library: Path) -> str:
    """What our check says; it makes no file."""
    try:
        check(workflow, RunOptions(state_dir=library.parent / "state", templates=(library,)))
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.skipif(not argo.binary(), reason=f"no argo {argo.VERSION} here; the recorded verdicts are compared")
def test_the_record_is_what_argo_says(tmp_path: Path) -> None:
    (tmp_path / "library.yaml").write_bytes(cases.with_containers(cases.LIBRARY))
    files = {name: tmp_path / f"{number}.yaml" for number, name in enumerate(cases.CASES)}
    for name, path in files.items():
        path.write_bytes(cases.manifest(name))
    found = argo.verdicts(files.values(), tmp_path / "library.yaml")
    verdicts = {name: found[path] for name, path in files.items()}
    if os.environ.get("ARGOSY_REGENERATE"):
        text = json.dumps({"version": argo.VERSION, "verdicts": verdicts}, indent=1, ensure_ascii=False)
        RECORD.write_text(text + "\n")
    assert {name: bool(said) for name, said in recorded().items()} == {
        name: bool(said) for name, said in verdicts.items()
    }


def refused_by_argo(said: str) -> bool:
    """What is no workflow at all is refused without a heading."""
    return BY_ARGO in said or (said != "" and BY_US not in said)


@pytest.mark.skipif(not argo.binary(), reason=f"no argo {argo.VERSION} here to judge mutants")
def test_mutants_as_argo(tmp_path: Path) -> None:
    seed = int(os.environ.get("ARGOSY_MUTANTS_SEED") or random.randrange(10**9))
    count = int(os.environ.get("ARGOSY_MUTANTS") or 60)
    print(f"mutants {seed} to {seed + count - 1}")
    library = tmp_path / "library.yaml"
    library.write_bytes(cases.with_containers(cases.LIBRARY))
    valid = sorted(name for name, said in recorded().items() if not said)
    files = {tmp_path / f"{number}.yaml": mutants.mutant(number, valid) for number in range(seed, seed + count)}
    for path, (_, data) in files.items():
        path.write_bytes(data)
    differences = {}
    for path, said in argo.verdicts(files, library).items():
        mine = judged(path.read_bytes(), library)
        # A parameter without a value passes lint, and submit refuses it.
        if refused_by_argo(mine) != bool(said) and "give one with -p" not in mine:
            differences[path.stem] = (files[path][0], said, mine)
    assert not differences


@pytest.mark.parametrize("name", cases.CASES)
def test_as_argo(name: str, tmp_path: Path) -> None:
    library = tmp_path / "library.yaml"
    library.write_bytes(cases.with_containers(cases.LIBRARY))
    said, real = judged(cases.manifest(name), library), recorded()[name]
    if name in NOT_BUILT_IN:
        assert not real
        assert BY_ARGO not in said
        assert NOT_BUILT_IN[name] in said.partition(BY_US)[2]
    elif real:
        assert refused_by_argo(said), f"Argo says: {real}"
    else:
        assert not said
    assert not (tmp_path / "state").exists()
