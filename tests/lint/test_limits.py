"""What a file may ask of lint: more than any manifest needs, and not more than a machine has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
ONE = POD + "  - name: c\n    image: r/x:1\n    command: [bash, -c, '%s']\n"
TEMPLATE = (
    "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: w-}\nspec:\n  entrypoint: m\n"
    "  templates:\n  - {name: m, container: {image: r/x:1, command: [echo], args: ['%s']}}\n"
)
PAIR = """\
apiVersion: v1
kind: Service
metadata: {name: tN}
spec: {clusterIP: None, selector: {app: tN}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: tN}
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  template:
    metadata: {labels: {app: tN}}
    spec:
      restartPolicy: Never
      subdomain: tN
      containers:
      - {name: c, image: r/x:1, command: [torchrun, --nnodes=2, --master-addr=tN-0.tN, "--lr 3e-4", train.py]}
---
"""
SCRIPT = "".join(f'      export A{n}="$A{n - 1} $(echo\n' for n in range(20_000))
HOSTILE = {
    "brackets": ("a: " + "[" * 25_000 + "]" * 25_000, "nested more than"),
    "dashes": ("- " * 20_000 + "a", "nested more than"),
    "exponent": (POD + "  - {name: c, image: r/x:1, resources: {limits: {memory: 1e400, cpu: 1e99999}}}\n", ""),
    "pairs": ("".join(PAIR.replace("N", str(n)) for n in range(200)), "can be mended with --fix"),
    "containers": (POD + "".join(f"  - {{name: c{n}, image: r/x:1}}\n" for n in range(20_000)), "values"),
    "tags": (TEMPLATE % ("{{a.b}} " * 100_000), "ARGO010"),
    "bare": ("a:\n" + "".join(f"  k{n}: {{{{x}}}}\n" for n in range(100_000)), "values"),
    "braces": (TEMPLATE % ("{{" * 300_000), ""),
    "word": (ONE % ("a" * 3_000_000), "no object of Kubernetes can hold it"),
    "quotes": (ONE % ('a " ' * 200_000), ""),
    "commands": (POD + "  - name: c\n    image: r/x:1\n    command:\n    - bash\n    - -c\n    - |\n" + SCRIPT, ""),
    "large": (" " * (9 << 20), "more than 8 MiB"),
}


MEASURED = (
    "import json, resource, subprocess, sys\n"
    "code = subprocess.run(sys.argv[2:]).returncode\n"
    "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
    "open(sys.argv[1], 'w').write(json.dumps([code, used.ru_utime + used.ru_stime, used.ru_maxrss >> 10]))"
)
"""A small process between: one that pytest starts counts pytest's own memory, which it has until it becomes another."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_costs_seconds_and_says_why(name: str, tmp_path: Path) -> None:
    text, told = HOSTILE[name]
    lint = [sys.executable, "-m", "argosy.workflows.cli.main", "lint", "-"]
    argv = [sys.executable, "-c", MEASURED, str(tmp_path / "used"), *lint]
    done = subprocess.run(argv, input=text.encode(), capture_output=True, timeout=120, check=False)
    code, seconds, memory = json.loads((tmp_path / "used").read_text())
    output = (done.stdout + done.stderr).decode()
    assert code in (0, 1), output
    assert "Traceback" not in output
    assert told in output, output[-2000:]
    # 2 on idle cores; what shares a core with others is counted more. Those that grew by the square took over 90.
    assert seconds <= 6, f"{seconds:.1f} s of CPU"
    assert memory <= 500, f"{memory} MiB"
