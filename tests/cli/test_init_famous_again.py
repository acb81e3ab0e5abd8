"""init on what a second lot of well-known public programs did otherwise."""

from __future__ import annotations

FLAGS = "import argparse, glob, os, torch\nimport numpy as np\np = argparse.ArgumentParser()\n"


def test_a_save_at_the_steps_of_an_empty_list_is_none(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        f"{FLAGS}p.add_argument('--save_at', nargs='+', type=int, default=[])\n"
        "p.add_argument('--start', default='')\na = p.parse_args()\ndef training(save_at):\n"
        "    for step in range(9):\n        if step in save_at:\n"
        "            torch.save({'step': step}, f'o/chkpnt{step}.pth')\ntraining(a.save_at)\n"
    )
    code, _, err = argosy("init", "train.py")
    assert (code, "line 10 saves only with --save_at" in err) == (2, True), err
    filled = (tmp_path / "train.py").read_text().replace("def training", "a.save_at.append(5)\ndef training")
    for script, words in ((filled, ()), (filled.replace("a.save_at.append(5)\n", ""), ("--", "--save_at", "5"))):
        (tmp_path / "train.py").write_text(script)
        code, out, err = argosy("init", "train.py", "--force", *words)
        assert (code, 'include = ["chkpnt*.pth"]' in out) == (0, True), err
