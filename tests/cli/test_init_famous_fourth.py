"""init on what a fourth lot of well-known public programs did otherwise."""

from __future__ import annotations

import pytest

AT_ITS_FILE = """\
import os, torch
from pathlib import Path
ROOT = %s
out = os.path.join(ROOT, "code", "out")
for epoch in range(9):
    torch.save({"model": model.state_dict()}, os.path.join(out, "last.pt"))
"""


@pytest.mark.parametrize(
    "root", ["os.path.dirname(os.path.dirname(__file__))", "Path(__file__).resolve().parents[1]",
             "os.path.dirname(os.path.dirname(os.path.abspath(__file__)))", "Path(__file__).parent.parent"]
)  # fmt: skip
def test_a_folder_above_the_one_that_it_runs_in_is_outside(argosy, tmp_path, root) -> None:
    (tmp_path / "train.py").write_text(AT_ITS_FILE % root)
    code, _, err = argosy("init", "train.py")
    assert (code, "../code/out" in err, "or call argosy init in the folder above" in err) == (2, True, True), err
    (tmp_path / "code").mkdir()
    (tmp_path / "train.py").rename(tmp_path / "code" / "train.py")
    code, out, err = argosy("init", "code/train.py")
    assert (code, 'path = "code/out"' in out) == (0, True), out + err


def test_a_relative_path_is_not_taken_for_an_absolute_one(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, torch\n"
        "def save(state, name):\n"
        "    if not os.path.isabs(name):\n"
        "        name = os.path.join('out', name)\n"
        "    torch.save(state, name)\n"
        "for epoch in range(9):\n"
        "    save({'model': model.state_dict()}, 'last.pt')\n"
    )
    code, out, err = argosy("init", "train.py")
    assert (code, 'path = "out"' in out, "not kept" in out) == (0, True, False), out + err


@pytest.mark.parametrize(
    "path", ["os.path.abspath('out')", "os.path.join(os.getcwd(), 'out')", "Path(__file__).resolve().parent / 'out'"]
)
def test_an_absolute_path_is_not_taken_for_a_relative_one(argosy, tmp_path, path) -> None:
    """A script that looks at its folder was refused: it came to no save."""
    (tmp_path / "train.py").write_text(
        "import os, torch\n"
        "from pathlib import Path\n"
        f"out = {path}\n"
        "if not os.path.isabs(out):\n"
        "    raise ValueError(out)\n"
        "for epoch in range(9):\n"
        "    torch.save({'model': model.state_dict()}, os.path.join(out, 'last.pt'))\n"
    )
    code, out, err = argosy("init", "train.py")
    assert (code, 'path = "out"' in out) == (0, True), out + err
