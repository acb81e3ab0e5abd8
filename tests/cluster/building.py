"""Building a pin from its module: fetched and verified by Go's module client, built once, kept in the cache."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from argosy.steps.child_python import die_with_parent
from tests.cluster.instance import cache_folder
from tests.cluster.pin import Pin
from tests.cluster.process import run
from tests.cluster.progress import ClusterError, say

HERE = Path(__file__).parent
REPLACE = re.compile(r"^\s*(?:replace\s+)?(\S+)(?:\s+\S+)?\s+=>\s+(\S+)(?:[ \t]+(\S+))?", re.MULTILINE)
"""A replacement in a go.mod: what, by which module or folder, at which version."""


def build(pin: Pin) -> Path:
    """Build a pin's programs and keep its manifests. Raises ClusterError with the compiler's words."""
    if shutil.which("go") is None:
        raise ClusterError(f"{pin.module} {pin.version} must be built and there is no go: https://go.dev/doc/install")
    say(f"building {pin.name} {pin.version}, about {pin.minutes} min on two cores")
    work = cache_folder() / "build" / pin.name
    part = pin.cached.with_name(f"{pin.cached.name}.{os.getpid()}")
    for folder in (work, part):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    module = Path(json.loads(run("go", "mod", "download", "-json", f"{pin.module}@{pin.version}", timeout=900))["Dir"])
    own = not any(package.startswith("./") for package in pin.packages.values())
    if own:
        _own_module(pin, module, work)
    else:
        _repaired_copy(module, work)
    variables = " ".join(f"-X {name}={value}" for name, value in pin.set.items())
    for program, package in pin.packages.items():
        if package.startswith("go/"):
            shutil.copy(HERE / package, work / "main.go")
            package = "."
        command = ["go", "build", "-trimpath", "-ldflags", f"-s -w {variables}", "-o", str(part / program)]
        _compile([*command, *(["-mod=mod"] if own else []), package], work, program)
    for name in pin.manifests:
        shutil.copytree(module / name, pin.manifest_folder(part) / name, copy_function=shutil.copyfile)
    shutil.rmtree(pin.cached, ignore_errors=True)
    part.rename(pin.cached)
    shutil.rmtree(work, ignore_errors=True)
    return pin.cached


def _own_module(pin: Pin, module: Path, work: Path) -> None:
    """A module of ours that requires the pin: Go replaces nothing for those who only import it, so we repeat it."""
    text = (module / "go.mod").read_text()
    lines = ["module argosy.local/build", _directive(text, "go"), f"require {pin.module} {pin.version}"]
    for name, target, version in REPLACE.findall(text):
        if version:
            lines.append(f"replace {name} => {target} {version}")
        elif target.startswith("./staging/"):  # Kubernetes v1.x.y: its parts are modules v0.x.y
            lines.append(f"replace {name} => {name} {pin.version.replace('v1.', 'v0.', 1)}")
    (work / "go.mod").write_text("\n".join(lines) + "\n")


def _directive(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"{name} "))


def _repaired_copy(module: Path, work: Path) -> None:
    """Argo's module lacks two files that its build wants: the page of its server, and a link, which modules drop."""
    shutil.copytree(module, work, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for folder in [work, *(path for path in work.rglob("*") if path.is_dir())]:
        folder.chmod(0o755)
    page = work / "ui" / "dist" / "app" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("no page\n")
    signals = work / "workflow" / "executor" / "osspecific"
    shutil.copyfile(signals / "signal_darwin.go", signals / "signal_linux.go")


def _compile(command: list[str], work: Path, program: str) -> None:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}
    log = work / f"{program}.log"
    with log.open("wb") as out:
        # Whoever is killed, and not asked, leaves no build behind that goes on for minutes.
        started = subprocess.Popen(
            command, cwd=work, env=environment, stdout=out, stderr=out, preexec_fn=die_with_parent()
        )
        try:
            while True:
                try:
                    code = started.wait(timeout=30)
                    break
                except subprocess.TimeoutExpired:
                    say(f"  {program}: still building")
        except BaseException:
            started.kill()
            started.wait()
            raise
    if code:
        raise ClusterError(f"{program}: go build failed\n{log.read_text(errors='replace')[-3000:]}")
