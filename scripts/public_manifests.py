"""Measure lint and import on public manifests: gather them from clones by a list of sources and hashes, count.

    python scripts/public_manifests.py CLONES OUT               # copies the files of benchmarks/public_manifests.tsv
    python scripts/public_manifests.py CLONES OUT third         # and lints a set of them: findings a file, every error
    python scripts/public_manifests.py CLONES OUT third import  # and imports each: the fate of every value

CLONES holds a git directory per repository, named OWNER+NAME. The list has repository, path, SHA-256, set: ``build``
and ``fifteenth`` were looked at while rules were written; the others from ``first`` on were measured one after the
other, each before anything in it was looked at; ``held`` is older. A file whose hash differs is told and left out.
``README.md#3`` is the third fenced block of a page.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "benchmarks/public_manifests.tsv"
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def gather(clones: Path, out: Path) -> None:
    """Copy the listed files, where the clones have them as they were."""
    for line in LIST.read_text("utf-8").splitlines():
        repository, path, digest, part = line.split("\t")
        places = (clones / repository / "repo" / ".git", clones / repository / "repo", clones / repository)
        git = next((each for each in places if (each / "HEAD").exists()), None)
        if git is None:
            print(f"{repository}: no clone")
            continue
        file, _, block = path.partition("#")
        shown = subprocess.run(
            ["git", "--git-dir", git, "show", f"HEAD:{file}"], capture_output=True, check=False
        ).stdout
        if block:
            blocks = FENCED.findall(shown.decode("utf-8", "replace").replace("\r\n", "\n"))
            shown = "".join(blocks[int(block) - 1 : int(block)]).encode()
        if hashlib.sha256(shown).hexdigest() != digest:
            print(f"{repository}/{path}: another file, or none")
            continue
        name = f"{repository}__{path.replace('/', '__')}"
        target = out / part / (name.replace("#", "_") + ".yaml" if block else name)[-200:]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(shown)


def measure(folder: Path) -> None:
    """Print findings per file at the default level, rules by how often they speak, and every error."""
    from argosy.workflows.lint.finding import Level
    from argosy.workflows.lint.linter import lint
    from argosy.workflows.manifests.reading import read_file

    files = sorted(folder.iterdir())
    found = [each for path in files for each in lint([read_file(path, path.name)]) if each.level > Level.NOTE]
    errors = [each for each in found if each.level is Level.ERROR]
    print(f"{len(files)} files, {len(found) / len(files):.2f} findings per file, {len(errors)} errors")
    print(Counter(each.rule for each in found).most_common(20))
    for each in errors:
        print(f"{each.place} {each.rule} {each.message}")


def bring_in(folder: Path) -> None:
    """Import and compile each file; print what has no fate, and what is called kept and stands nowhere."""
    from argosy.steps.contract.errors import InputError

    files, brought = sorted(folder.iterdir()), 0
    for path in files:
        try:
            wrong = list(_not_accounted(path))
        except InputError as error:
            print(f"refused: {error}")
            continue
        brought += 1
        for each in wrong:
            print(f"{path.name}: {each}")
    print(f"{len(files)} files, {brought} imported and compiled")


def _not_accounted(path: Path) -> Iterator[str]:
    sys.path.insert(0, str(ROOT))
    from argosy.workflows.compile import compile_run
    from argosy.workflows.imports.convert import convert
    from argosy.workflows.imports.record import record
    from argosy.workflows.manifests.quantity import quantity
    from argosy.workflows.manifests.reading import read_file
    from argosy.workflows.spec.load import parse_run
    from tests.imports.account import Account, leaves
    from tests.imports.test_nothing_is_lost import Plain, yaml

    held = record(convert([read_file(path, path.name)]))
    account, documents = Account(held), list(yaml.load_all(path.read_text("utf-8"), Plain))
    yield from account.unspoken_in(documents)
    text = compile_run(parse_run(held["toml"])).decode() + " ".join(str(value) for _, value in leaves(account.run))
    text = text.replace("$\\{", "${")  # how [env] writes what is not to be filled in
    values = [dict(leaves(document)) for document in documents]
    for each in account.entries:
        value = str(values[each["document"]].get(each["path"], "") if each["document"] < len(values) else "")
        # A part of a command has its own words, a number of an option stands without it, shm's volume is a size, and
        # one amount of memory is written in several ways.
        same = quantity(value) is not None and quantity(value) == quantity(account.run["gang"]["resources"]["memory"])
        told = same or each["part"] or each["advice"] or each["into"] in ("gang.shm_size", "gang.nproc_per_node")
        if (
            each["fate"] == "kept"
            and not told
            and value not in ("True", "False")
            and value.removeprefix("./").rstrip("/") not in text
        ):
            yield f"{each['path']} is called kept and stands nowhere: {value}"


if __name__ == "__main__":
    gather(Path(sys.argv[1]), Path(sys.argv[2]))
    if len(sys.argv) > 3:
        (bring_in if sys.argv[4:] == ["import"] else measure)(Path(sys.argv[2]) / sys.argv[3])
