"""No module of ours turns data into code: no pickle, no eval, no shell. Read from the syntax, so nothing hides."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(
    [*(ROOT / "steps").rglob("*.py"), *(ROOT / "workflows").rglob("*.py"), *(ROOT / "argosy").glob("*.py")]
)
FORBIDDEN_IMPORTS = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "shelve",
    "marshal",
    "joblib",
    "code",
    "pty",
}
FORBIDDEN_CALLS = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "commands.getoutput", "yaml.unsafe_load"),
    *("subprocess.getoutput", "subprocess.getstatusoutput", "yaml.full_load", "tempfile.mktemp", "numpy.load"),
    *("asyncio.create_subprocess_shell", "torch.jit.load", "torch.hub.load", "torch.package.PackageImporter"),
}
SAFE_LOADERS = {"SafeLoader", "CSafeLoader", "_LOADER", "_Loader", "LOADER"}
DEAD_PICKLES = {"steps/launch/file_step.py": ["imports pickle"]}
"""Reads plain values out of a training script's checkpoint; no name in it is ever looked up (its own tests strike)."""


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def offences(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f"imports {each.name}" for each in node.names if each.name.split(".")[0] in FORBIDDEN_IMPORTS)
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{each.name}" for each in node.names)]
            yield from (f"imports {name}" for name in names if name.split(".")[0] in FORBIDDEN_IMPORTS)
            yield from (f"imports {name}" for name in names if name in FORBIDDEN_CALLS)
        elif isinstance(node, ast.Call):
            yield from call_offences(node)


def call_offences(node: ast.Call) -> Iterator[str]:
    name = dotted(node.func)
    given = {word.arg: word.value for word in node.keywords}
    if name in FORBIDDEN_CALLS:
        yield f"calls {name}"
    if "shell" in given and not is_constant(given["shell"], False):
        yield f"{name}(shell=...)"
    if name.endswith("torch.load") and not is_constant(given.get("weights_only"), True):
        yield f"{name} without weights_only=True"
    if name.endswith("allow_pickle") or "allow_pickle" in given:
        yield f"{name}(allow_pickle=...)"
    if name in ("yaml.load", "yaml.load_all"):
        loader = given.get("Loader") or (node.args[1] if len(node.args) > 1 else None)
        if loader is None or dotted(loader).split(".")[-1] not in SAFE_LOADERS:
            yield f"{name} without a safe loader"
    if name.endswith(".extractall") and not is_constant(given.get("filter"), "data"):
        yield f'{name} without filter="data"'
    if given.get("verify") is not None and is_constant(given["verify"], False):
        yield f"{name}(verify=False)"


def is_constant(node: ast.AST | None, value: object) -> bool:
    return (isinstance(node, ast.Constant) and node.value is value) or (
        isinstance(node, ast.Constant) and isinstance(value, str) and node.value == value
    )


def test_data_stays_data() -> None:
    found = {str(path.relative_to(ROOT)): list(offences(ast.parse(path.read_text()))) for path in MODULES}
    assert {path: wrong for path, wrong in found.items() if wrong} == DEAD_PICKLES


@pytest.mark.parametrize(
    "text",
    [
        *["import pickle", "from pickle import loads", "import pickle as p", "eval('1')", "exec(x)", "os.system(x)"],
        *["subprocess.run(x, shell=True)", "run(x, shell=flag)", "torch.load(f)", "torch.load(f, weights_only=False)"],
        *["yaml.load(x)", "yaml.load(x, yaml.Loader)", "a.extractall(p)", "np.load(f, allow_pickle=True)"],
        *["from os import system", "yaml.unsafe_load(x)", "requests.get(u, verify=False)"],
    ],
)
def test_the_gate_sees(text: str) -> None:
    assert list(offences(ast.parse(text))), text


def test_yaml_loaders_are_safe_ones() -> None:
    """The names that the gate trusts are bound to PyYAML's safe loaders, or to classes made from them."""
    import yaml

    from argosy.workflows.cli.document import _LOADER
    from argosy.workflows.manifests.composing import LOADER
    from argosy.workflows.script.settings import _Loader

    for loader in (_LOADER, LOADER, _Loader):
        assert issubclass(loader, yaml.SafeLoader | getattr(yaml, "CSafeLoader", yaml.SafeLoader))
