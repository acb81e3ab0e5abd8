"""The code archive: the same files, the same bytes; nothing that should stay at home."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from argosy.steps.contract.errors import InputError
from argosy.steps.store import open_store
from argosy.workflows import code
from argosy.workflows.code import FETCHED, pack, push
from argosy.workflows.no_code import written_while_running
from argosy.workflows.spec.run import TrainingRun


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    files = {f"d{number % 3}/f{number}.py": f"x = {number}\n" for number in range(20)} | {"ünï.py": "", "n" * 150: ""}
    names = list(files)
    first = pack(write(tmp_path / "one", files))
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    random.Random(seed).shuffle(names)
    second = write(tmp_path / "two", {name: files[name] for name in names})
    for path in second.rglob("*"):
        os.utime(path, (1, 1))
    (second / "d0/f0.py").chmod(0o640)
    assert pack(second).data == first.data
    assert first.digest == hashlib.sha256(first.data).hexdigest()
    assert first.files == tuple(sorted(files))


def test_an_empty_folder_travels_unless_an_ignore_file_names_it(tmp_path: Path) -> None:
    root = write(tmp_path / "code", {"train.py": "", ".gitignore": "data/\n"})
    for name in ("checkpoints", "a/b/runs", "data", "__pycache__"):
        (root / name).mkdir(parents=True)
    archive = pack(root)
    assert archive.files == (".gitignore", "train.py")
    with tarfile.open(fileobj=io.BytesIO(archive.data)) as packed:
        assert [each.name for each in packed if each.isdir()] == ["a/b/runs", "checkpoints"]


def test_a_change_is_another_digest(tmp_path: Path) -> None:
    before = pack(write(tmp_path, {"a.py": "1"})).digest
    (tmp_path / "a.py").chmod(0o755)
    executable = pack(tmp_path).digest
    write(tmp_path, {"a.py": "2"})
    assert len({before, executable, pack(tmp_path).digest}) == 3


def test_a_log_beside_the_code_does_not_change_it(tmp_path: Path) -> None:
    before = pack(write(tmp_path, {"a.py": "1", "data/words.txt": "2"})).digest
    write(tmp_path, {"train.log": "step 1", "nohup.out": "step 1", "data/x.log": "step 1"})
    assert pack(tmp_path).digest == before
    write(tmp_path, {".argosyignore": "!data/x.log\n"})
    assert pack(tmp_path).files == (".argosyignore", "a.py", "data/words.txt", "data/x.log")


def test_members_carry_no_owner_and_no_time(tmp_path: Path) -> None:
    archive = pack(write(tmp_path, {"a.py": "1", "b/c.py": "2"}))
    with tarfile.open(fileobj=io.BytesIO(archive.data)) as members:
        for member in members:
            assert (member.uid, member.gid, member.uname, member.gname, member.mtime) == (0, 0, "", "", 0)
            assert member.mode == 0o644
    assert archive.data[4:8] == b"\0\0\0\0"


def test_ignore_rules(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".gitignore": "*.log\n/build/\n!keep.log\n",
            ".argosyignore": "notes/\n*.pt\n",
            "train.py": "",
            "run.log": "",
            "keep.log": "",
            "build/x.py": "",
            "sub/build/y.py": "",
            "notes/n.md": "",
            "out/ckpt.pt": "",
            "sub/.gitignore": "!*.pt\n*.tmp\n",
            "sub/kept.pt": "",
            "sub/a.tmp": "",
            "a.tmp": "",
            ".git/config": "",
            ".venv/lib.py": "",
            ".argosy/runs/x": "",
            "pkg/__pycache__/m.pyc": "",
            "pkg/m.py": "",
        },
    )
    assert set(pack(tmp_path).files) == {
        *(".gitignore", ".argosyignore", "train.py", "keep.log", "sub/build/y.py"),
        *("sub/.gitignore", "sub/kept.pt", "a.tmp", "pkg/m.py"),
    }


def test_links(tmp_path: Path) -> None:
    root = write(tmp_path / "code", {"a.py": "1", "d/b.py": "2"})
    (root / "d/to_a").symlink_to("../a.py")
    (root / "absolute").symlink_to(root / "d/b.py")
    (root / ".#editor").symlink_to("user@host.123")
    archive = pack(root)
    with tarfile.open(fileobj=io.BytesIO(archive.data)) as members:
        # Python 3.11.2, which Debian 12 has, knows no filters.
        members.extractall(tmp_path / "out", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    assert (tmp_path / "out/d/to_a").read_text() == "1"
    assert (tmp_path / "out/absolute").read_text() == "2"


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "loop/../../secret", "chain"])
def test_a_link_that_leaves_is_refused(target: str, tmp_path: Path) -> None:
    root = write(tmp_path / "code", {"a.py": "1"})
    (tmp_path / "secret").write_text("s")
    if target == "chain":
        # Inside by its own words, outside by where it ends.
        (root / "chain").symlink_to("../secret")
    (root / "link").symlink_to(target)
    with pytest.raises(InputError, match=r"code: (link|chain) is a link to .*outside the folder; copy the file"):
        pack(root)


def test_a_link_loop_inside_travels_as_it_is(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "1"})
    (root / "x").symlink_to("y")
    (root / "y").symlink_to("x")
    assert pack(root).files == ("a.py", "x", "y")


def test_too_much_names_the_biggest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "MAX_BYTES", 3 << 20)
    write(tmp_path, {"small.py": "x"})
    with (tmp_path / "model.bin").open("wb") as file:
        file.truncate(5 << 20)
    with pytest.raises(InputError, match=r"5\.0 MiB is more than 3\.0 MiB; the biggest: model\.bin \(5\.0 MiB\)"):
        pack(tmp_path)
    (tmp_path / ".argosyignore").write_text("*.bin\n")
    assert pack(tmp_path).files == (".argosyignore", "small.py")


def test_what_is_no_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.py": ""})
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)  # a socket's path is limited to about 100 bytes
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert pack(tmp_path).files == ("a.py",)


def test_bad_folders_and_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        pack(tmp_path / "absent")
    (tmp_path / os.fsdecode(b"\xff.py")).write_text("")
    with pytest.raises(InputError, match="the name is not UTF-8"):
        pack(tmp_path)


def test_push_writes_once(tmp_path: Path) -> None:
    archive = pack(write(tmp_path / "code", {"a.py": "1"}))
    store = open_store(f"file://{tmp_path}/store")
    uri = push(archive, store, "n")
    path = tmp_path / f"store/n/code/{archive.digest}.tar.gz"
    assert uri == f"file://{path}"
    assert path.read_bytes() == archive.data
    before = path.stat()
    assert push(archive, store, "n") == uri
    assert path.stat().st_ino == before.st_ino


def test_data_that_an_ignore_file_keeps_at_home_is_named(tmp_path: Path) -> None:
    ignored = {".gitignore": "*.bin\n*.pyc\n*.dat\n*.pt\ndatasets/\n", "train.bin": "1", "m.pyc": "2"}
    packed = pack(write(tmp_path, ignored | {"c.dat": "5", "vgg.pt": "6", "datasets/a": "3", "a.py": "4"}))
    assert packed.left_out == ("c.dat", "datasets/", "train.bin", "vgg.pt")
    assert packed.files == (".gitignore", "a.py")


def test_what_no_ignore_file_names_is_not_said_to_be_named_by_one(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"o.txt": "1", "own.txt": "2", "back/w.npz": "3", "back/.argosyignore": FETCHED, ".gitignore": "own.txt"},
    )
    packed = pack(tmp_path, ["/o.txt"])  # as of a run whose output goes there
    assert packed.left_out == ("own.txt",)
    assert packed.files == (".gitignore",)


EVENT = '{"Records": [{"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "b"}, "object": {"key": "k"}}}]}'
NO_CODE = {
    "event.json": EVENT, "sqs.json": json.dumps({"Messages": [{"Body": EVENT}]}),
    "minio.json": '{"EventName": "s3:ObjectCreated:Put", "Key": "b/k", "Records": [{"s3": {"bucket": {"name": "b"}}}]}',
    "o.txt": "[    0.1 s] gang 1: 1 node", "both.txt": f"yaml sha256 {'a' * 64}\n", "tee.txt": "", "run.out": "x",
    "story.txt": "gpt-x7k2p: Failed. No step was made", "state": "gpt-x7k2p (run id gpt-1): Promoted, 3.1 s",
    "out1": f"yaml sha256 {'a' * 64}\n",
    "out/ckpt.pt": "1", "out/deep/x": "2", ".hg/store": "3", "wandb/run/x": "4", "lightning_logs/v": "5",
    "events.out.tfevents.1": "6", ".ipynb_checkpoints/a.py": "7", "a.py~": "8", ".run.toml.part": "9",
}  # fmt: skip
CODE = {
    "train.py": "1", "requirements.txt": "torch\n", "config.json": '{"Records": 1}', "output/model.py": "2",
    "vocab.txt": "[PAD]\n[   1] x", "answers.txt": "gpt: Failed to answer", "pkg/__init__.py": "",
}  # fmt: skip


def test_what_is_no_code_stays_at_home_and_changes_no_digest(tmp_path: Path) -> None:
    run = TrainingRun(name="n", script="train.py", checkpoint={"mode": "opaque", "path": "out"})
    alone = pack(write(tmp_path / "a", CODE), written_while_running(run, tmp_path / "a"))
    among = pack(write(tmp_path / "b", CODE | NO_CODE), written_while_running(run, tmp_path / "b"))
    assert among.files == tuple(sorted(CODE))
    assert among.digest == alone.digest
    write(tmp_path / "b", {".argosyignore": "!wandb/\n!run.out\n"})
    assert {"run.out", "wandb/run/x"} <= {*pack(tmp_path / "b").files}


@pytest.mark.parametrize(
    ("path", "include", "left"),
    [
        (".", ["ckpt*.pt"], {"sub/ckpt1.pt", "model.pt", "we[1]rd/x.pt"}),
        ("we[1]rd", ["*.pt"], {"ckpt1.pt", "sub/ckpt1.pt", "model.pt"}),
    ],
)
def test_only_the_checkpoints_own_files_stay(path: str, include: list[str], left: set[str], tmp_path: Path) -> None:
    files = {"ckpt1.pt": "1", "sub/ckpt1.pt": "2", "model.pt": "3", "we[1]rd/x.pt": "4"}
    run = TrainingRun(name="n", script="t.py", checkpoint={"mode": "opaque", "path": path, "include": include})
    folder = write(tmp_path / "code", files)
    assert {*pack(folder, written_while_running(run, folder)).files} == left


def test_a_store_within_the_code_folder_stays(tmp_path: Path) -> None:
    root = write(tmp_path / "my run", {"train.py": "1", "kept/store/model.py": "2"})
    (tmp_path / "link").symlink_to(root)
    run = TrainingRun(name="n", script="train.py", storage={"uri": f"{(tmp_path / 'link').as_uri()}/store%20[1]"})
    alone = pack(root, written_while_running(run, root))
    write(root, {"store [1]/n/runs/a/log/0000000001.json": "{}", "store [1]/.argosy-parts/x": ""})
    assert pack(root, written_while_running(run, root)).digest == alone.digest
    assert alone.files == ("kept/store/model.py", "train.py")


def test_what_this_very_command_writes_into_stays(tmp_path: Path) -> None:
    write(tmp_path / "code", {"t.py": "1", "run.toml": 'name = "n"\nscript = "t.py"\n'})
    said = []
    for name in ("o 1.yaml", "o 2.yaml"):
        with (tmp_path / "code" / name).open("w") as out:
            command = [sys.executable, "-m", "argosy.workflows.cli.main", "compile", "run.toml"]
            subprocess.run(command, cwd=tmp_path / "code", stdout=out, stderr=subprocess.DEVNULL, check=True)
        said.append((tmp_path / "code" / name).read_text())
    assert said[0] == said[1]


def test_rules_in_a_folder_whose_name_is_no_utf8_are_read(tmp_path: Path) -> None:
    """A checkpoint was fetched into such a folder; compile told of a mistake of ours."""
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    (folder / ".gitignore").write_text("*\n")
    (folder / "model.bin").touch()
    (tmp_path / "train.py").touch()
    assert pack(tmp_path).files == ("train.py",)


def test_the_first_rule_after_a_byte_order_mark_counts_as_it_does_for_git(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbfdata/\r\n*.pt\r\n")
    (tmp_path / "data").mkdir()
    for name in ("data/a", "m.pt", "train.py"):
        (tmp_path / name).touch()
    assert pack(tmp_path).files == (".gitignore", "train.py")
