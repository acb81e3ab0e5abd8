"""Hold the house rules on sizes: files <= 300 lines, functions: 90 % <= 30 lines, none over 60."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

FILE_LINES = 300
P90_LINES = 30
MAX_LINES = 60


def tracked() -> list[Path]:
    """Python files of the packages (and what is not committed yet)."""
    listing = subprocess.run(
        [
            "git",
            "ls-files",
            "-co",
            "--exclude-standard",
            "steps",
            "workflows",
            "argosy",
            "examples",
            "benchmarks",
            "scripts",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [Path(name) for name in listing if name.endswith(".py") and Path(name).is_file()]


def functions(path: Path) -> list[tuple[int, str]]:
    """(lines, where) of each function, its docstring not counted."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body[0]
            head = node.body[0].lineno - node.lineno
            found.append(((node.end_lineno or 0) - first.lineno + 1 + head, f"{path}:{node.lineno} {node.name}"))
    return found


def main() -> int:
    """Print what breaks a rule; 1 if anything does."""
    files = tracked()
    long_files = [(len(path.read_text().splitlines()), path) for path in files]
    broken = [f"{path}: {lines} lines, at most {FILE_LINES}" for lines, path in long_files if lines > FILE_LINES]
    lengths = sorted(length for path in files for length in functions(path))
    broken += [f"{where}: {lines} lines, at most {MAX_LINES}" for lines, where in lengths if lines > MAX_LINES]
    p90 = lengths[int(len(lengths) * 0.9)][0] if lengths else 0
    if p90 > P90_LINES:
        broken.append(f"90 % of the functions should have at most {P90_LINES} lines; it is {p90}")
    print("\n".join(broken) if broken else f"sizes: {len(files)} files, {len(lengths)} functions, p90 {p90} lines")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
