"""init on what a restart finds, or does not: lists that lead nowhere, folders that may not be there, names of files."""

from __future__ import annotations

import tomllib

import pytest

HEAD = """import argparse, glob, json, os, sys, torch
p = argparse.ArgumentParser()
p.add_argument("--out", default="out")
%s
def main():
    args = p.parse_args()
    net = torch.nn.Linear(2, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    start = 0
"""
LOAD = """        state = torch.load(%s)
        net.load_state_dict(state["net"]); opt.load_state_dict(state["opt"]); start = state["epoch"] + 1
"""
LOOP = """
    for epoch in range(start, 9):
        net(torch.ones(1, 2)).sum().backward(); opt.step()
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch},
                   os.path.join(args.out, "c_%d.pt" % epoch))
"""
RESUME = 'p.add_argument("--resume", default="")'
SWITCH = 'p.add_argument("--resume", action="store_true")'


@pytest.fixture
def init(argosy, tmp_path):
    """What init writes and says for a script: (run.toml or None, all that it says)."""

    def call(flags: str, before: str, *argv: str, after: str = "", loop: str = "range(start, 9)", above: str = ""):
        turns = LOOP.replace("range(start, 9)", loop)
        (tmp_path / "train.py").write_text(f"{above}{HEAD % flags}{before}{turns}{after}main()\n")
        code, out, err = argosy("init", "train.py", *argv)
        return (tomllib.loads((tmp_path / "run.toml").read_text()) if code == 0 else None), out + err

    return call


@pytest.mark.parametrize(
    "before",
    [
        '    if os.listdir(args.out):\n        print("not empty")\n',
        '    number = len(glob.glob(os.path.join(args.out, "*")))\n    print(number)\n',
        "    tidy(args.out)\n",
    ],
)
def test_a_list_that_nothing_is_loaded_of_is_no_search(before: str, init) -> None:
    tidy = 'def tidy(out):\n    for each in glob.glob(os.path.join(out, "c_*.pt")):\n        os.remove(each)\n'
    _, said = init("", before, above=tidy)
    assert "every restart may begin anew" in said
    assert "goes on by itself" not in said


def test_a_list_that_a_function_hands_back_is_one(init) -> None:
    newest = "def newest(out):\n    return max(os.listdir(out), default=None)\n"
    before = f"    found = newest(args.out)\n    if found:\n{LOAD % 'os.path.join(args.out, found)'}"
    assert "looks for it and goes on by itself" in init("", before, above=newest)[1]


@pytest.mark.parametrize(
    ("test", "last", "argv", "ends"),
    [
        ("os.path.exists(args.out)", "raise ValueError(args.out)", (), True),
        ("len(os.listdir(args.out)) > 0 and not args.force", "sys.exit(1)", (), True),
        ("os.listdir(args.out) and not args.force", "raise ValueError(args.out)", ("--", "--force"), False),
        ("not os.path.exists(args.out)", "raise ValueError(args.out)", (), False),
        ("os.path.exists(args.out) and not args.resume", "raise ValueError(args.out)", (), False),
    ],
)
def test_a_script_that_ends_where_its_folder_is_there(test, last, argv, ends: bool, init) -> None:
    flags = f'{RESUME}\np.add_argument("--force", action="store_true")'
    found, said = init(flags, f"    if {test}:\n        {last}\n    if args.resume:\n{LOAD % 'args.resume'}", *argv)
    assert (found is None) == ends, said
    assert ("ends the script if" in said) == ends, said


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("args.resume", ["--resume", "{newest}"]),
        ("os.path.join(args.out, args.resume)", ["--resume", "../{newest}"]),
        ("f'out/{args.resume}'", ["--resume", "../{newest}"]),
        ("os.path.join(args.out, args.resume + '.pt')", None),
    ],
)
def test_a_flag_that_names_a_file_in_a_folder(path: str, words, init) -> None:
    found, said = init(RESUME, f"    if args.resume:\n{LOAD % path}")
    assert found["checkpoint"].get("resume_args") == words, said
    assert words or "the script puts .pt behind it: say what it takes with --resume-arg" in said


def test_what_a_switch_loads_by_itself_needs_no_number(init) -> None:
    flags = 'p.add_argument("--resume", action="store_true")\np.add_argument("--load_iter", type=int, default=0)'
    path = 'os.path.join(args.out, "c_iter_%d.pt" % args.load_iter if args.load_iter > 0 else "c_last.pt")'
    before = f"    if args.resume:\n{LOAD % path}"
    after = '        torch.save({"net": net.state_dict()}, os.path.join(args.out, "c_last.pt"))\n'
    found, said = init(flags, before, after=after)
    assert found["checkpoint"]["resume_args"] == ["--resume"], said


def test_of_two_files_with_a_flag_each_the_newest_may_be_either(init) -> None:
    flags = f'{RESUME}\np.add_argument("--resume_d", default="")'
    before = f"    if args.resume:\n{LOAD % 'args.resume'}    if args.resume_d:\n{LOAD % 'args.resume_d'}"
    after = '        torch.save({"net": net.state_dict(), "epoch": epoch}, os.path.join(args.out, "d_%d.pt" % epoch))\n'
    found, said = init(flags, before, after=after)
    assert "resume_args" not in found["checkpoint"], said
    assert "each save writes several files" in said


def test_what_is_saved_beside_numbered_states_is_not_the_newest_of_them(init) -> None:
    after = '        torch.save({"epoch": epoch, "losses": []}, os.path.join(args.out, "losses.pt"))\n'
    found, said = init(RESUME, f"    if args.resume:\n{LOAD % 'args.resume'}", after=after)
    assert found["checkpoint"]["resume_args"] == ["--resume", "{newest:c_*.pt}"], said


def test_what_a_dataset_keeps_is_no_checkpoint(init) -> None:
    words = "import torch\nclass Words(torch.utils.data.Dataset):\n    def __init__(self):\n"
    words += '        torch.save({"epoch": 0}, "data/words.pt")\n'
    found, said = init(RESUME, f"    Words()\n    if args.resume:\n{LOAD % 'args.resume'}", above=words)
    assert found["checkpoint"]["path"] == "out", said


WRITES = '        with open(os.path.join(args.out, "%s"), "w") as file:\n            file.write(str(epoch))\n'
READS = '    with open(os.path.join(args.out, "%s")) as file:\n        %s\n'


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ('p.add_argument("--resume", action="store_true")', ["--resume"]),
        (RESUME, ["--resume", "{newest:c_*.pt}"]),
    ],
)
def test_a_small_file_that_it_writes_and_reads_beside_them_is_kept(flags: str, words, init) -> None:
    where = "args.resume" if "default" in flags else "os.path.join(args.out, file.read())"
    before = "    if args.resume:\n    " + (READS % ("latest.txt", "    name = " + where)) + LOAD % "name"
    found, said = init(flags, before.replace("file:\n", "file:\n    "), after=WRITES % "latest.txt")
    assert found["checkpoint"]["include"] == ["c_*.pt", "latest.txt"], said
    assert found["checkpoint"]["resume_args"] == words, said


def test_a_small_file_that_a_function_reads_which_the_flag_calls(init) -> None:
    above = 'import os\ndef newest(out):\n    name = os.path.join(out, "latest.txt")\n    return open(name).read()\n'
    before = f"    if args.resume:\n        name = newest(args.out)\n{LOAD % 'name'}"
    flags = 'p.add_argument("--resume", action="store_true")'
    found, said = init(flags, before, after=WRITES % "latest.txt", above=above)
    assert found["checkpoint"]["include"] == ["c_*.pt", "latest.txt"], said


STATE = '{"model": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch}'


@pytest.mark.parametrize(
    "written",
    [
        "torch.save(STATE, last + '.tmp'); shutil.copyfile(last + '.tmp', last)",
        "buffer = io.BytesIO(); torch.save(STATE, buffer); Path(last).write_bytes(buffer.getvalue())",
        "open(last, 'wb').write(packed(STATE))",
        "link(last, f'c_{epoch}.pt')",
        "os.system(f'cp {args.out}/c_{epoch}.pt {last}')",
    ],
)
def test_a_state_that_no_library_wrote_and_the_switch_reads_is_kept(written: str, init) -> None:
    """Without it a restart on another node found nothing, and one on the same node what a kill had torn."""
    flags = 'p.add_argument("--resume", action="store_true")'
    above = "import io, os, shutil\nfrom pathlib import Path\nfrom tools import link, packed\n"
    before = f"    last = os.path.join(args.out, 'last.pt')\n    if args.resume:\n{LOAD % 'last'}"
    after = f"        {written.replace('STATE', STATE)}\n"
    found, said = init(flags, before, after=after, above=above)
    assert found["checkpoint"]["include"] == ["c_*.pt", "last.pt"], said
    assert found["checkpoint"]["resume_args"] == ["--resume"], said


def test_what_is_saved_through_a_file_that_is_open_is_the_state(init) -> None:
    after = '        with open(os.path.join(args.out, "a.pt"), "wb") as file:\n            torch.save(net, file)\n'
    before = '    if args.resume:\n        state = torch.load(open(os.path.join(args.out, "a.pt"), "rb"))\n'
    found, said = init(RESUME, before, after=after)
    assert found["checkpoint"]["include"] == ["c_*.pt", "a.pt"], said  # which a restart reads


def test_a_restart_is_read_with_its_words_and_what_it_reads_is_kept(init) -> None:
    """``config.json`` beside the checkpoint that --resume names lies in a folder that each start makes anew."""
    above = "import time\nfrom pathlib import Path\n"
    before = (
        "    if args.resume:\n        args.lr = json.load((Path(args.resume).parent / 'config.json').open('rt'))\n"
        f"{LOAD % 'args.resume'}"
        "    args.out = os.path.join(args.out, time.strftime('%H%M%S'))\n    os.makedirs(args.out)\n"
        "    with open(os.path.join(args.out, 'config.json'), 'w') as file:\n        json.dump(0.1, file)\n"
    )
    found, said = init(RESUME, before, above=above)
    assert found["checkpoint"]["include"] == ["*/c_*.pt", "*/config.json"], said
    assert found["checkpoint"]["resume_args"] == ["--resume", "{newest:*/c_*.pt}"], said
    assert "nothing was seen that reads" not in said


def test_of_a_file_that_is_written_under_several_names_the_one_that_is_read_is_kept(init) -> None:
    """Which of them was met first was left to chance."""
    after = "        for end in ('', os.environ['END']):\n            json.dump(1, open(f'out/info{end}.json', 'w'))\n"
    before = f"    if args.resume:\n        json.load(open('out/info.json'))\n{LOAD % 'args.resume'}"
    found, said = init(RESUME, before, after=after)
    assert found["checkpoint"]["include"] == ["c_*.pt", "info.json"], said


def test_what_a_flag_is_given_is_what_was_seen_to_read_the_checkpoint(init) -> None:
    """The name of a file would do as well for all that the flag's name tells."""
    after = f"        torch.save({STATE}, 'out/m.pt')\n"
    turns = LOAD % "Path(args.resume).joinpath('m.pt')"
    found, said = init(RESUME, f"    if args.resume:\n{turns}", after=after, above="from pathlib import Path\n")
    assert found["checkpoint"]["resume_args"] == ["--resume", "out"], said
    assert "nothing was seen that reads" not in said


def test_what_a_restart_reads_beside_a_save_elsewhere_cannot_be_kept_with_the_others(init) -> None:
    after = "        torch.save(opt.state_dict(), 'other/opt.pt')\n"
    before = f"    if args.resume:\n{LOAD % 'args.resume'}        json.load(open('other/config.json'))\n"
    before += "    with open('other/config.json', 'w') as file:\n        json.dump(0.1, file)\n"
    found, said = init(RESUME, before, after=after)
    assert found, said
    assert found["checkpoint"]["include"] == ["c_*.pt"]


@pytest.mark.parametrize("read", ["", "        state = torch.load('weights/' + os.environ['FROM'])\n"])
def test_words_with_which_nothing_reads_what_was_saved_are_not_told_as_certain(read: str, init) -> None:
    before = f"    if args.resume:\n        print('going on')\n{read}    os.makedirs(args.out, exist_ok=True)\n"
    found, said = init(RESUME, before)
    assert found["checkpoint"]["resume_args"] == ["--resume", "{newest}"]
    assert "nothing was seen that reads what it saved: see it go on once (--inject, below). For it to go on" in said


@pytest.mark.parametrize(
    ("flag", "path"),
    [
        (RESUME, "args.resume"),
        (SWITCH, "os.path.join(args.out, sorted(os.listdir(args.out))[-1])"),
        (SWITCH, "max(glob.glob(args.out + '/c_*.pt'))"),
        (SWITCH, "os.path.join(args.out, 'last.pt')"),
    ],
)
def test_words_with_which_a_restart_reads_what_was_saved_are_told_without_a_doubt(flag: str, path: str, init) -> None:
    after = "        shutil.copyfile('now.pt', os.path.join(args.out, 'last.pt'))\n"
    found, said = init(flag, f"    if args.resume:\n{LOAD % path}", after=after, above="import shutil\n")
    assert found["checkpoint"]["resume_args"][0] == "--resume"
    assert "nothing was seen that reads" not in said


def test_what_is_read_beside_a_folder_that_the_user_names_has_a_reason_of_its_own(init) -> None:
    before = "    with open('out/a.json', 'w') as file:\n        json.dump(1, file)\n"
    before += f"    if args.resume:\n{LOAD % 'args.resume'}        json.load(open('out/a.json'))\n"
    found, said = init(RESUME, before, "--opaque", "out")
    assert found["checkpoint"]["include"] == ["c_*.pt", "a.json"]
    assert '  path = "out": line 15 reads a.json again\n' in said


def test_what_only_the_first_start_writes_above_the_checkpoints_is_told_of(init) -> None:
    written = "with open('out/a.json', 'w') as file:\n            json.dump(1, file)\n"
    before = f"    if args.resume:\n{LOAD % 'args.resume'}        json.load(open('out/a.json'))\n"
    told = "; line 13 reads out/a.json, which the first start writes, and which is not kept"
    assert told in init(RESUME, f"{before}    else:\n        {written}", "--", "--out", "out/c")[1]
    found, said = init(RESUME, f"    if True:\n        {written}{before}", "--force", "--", "--out", "out/c")
    assert found, said
    assert "out/a.json" not in said  # each start writes it


def test_words_that_the_user_gives_are_not_doubted(init) -> None:
    found, said = init("", "", "--resume-arg=--from", "--resume-arg={newest}")
    assert found["checkpoint"]["resume_args"] == ["--from", "{newest}"]
    assert "nothing was seen that reads" not in said


def test_a_small_file_is_not_what_another_function_calls_by_the_same_name(init, tmp_path) -> None:
    (tmp_path / "data.py").write_text(
        "def picture(path):\n    return open(path, 'rb').read()\n"
        "def default(path):\n    return picture(path)\n"
        "class Folder:\n    def __init__(self, loader=default):\n        self.loader = loader\n"
        "    def __getitem__(self, index):\n        path, _ = self.samples[index]\n        return self.loader(path)\n"
        "def make(x):\n    return Folder(loader=default if x else picture)\n"
    )
    above = "import os, data\ndata.make(None)\n"
    after = 'path = os.path.join("out", "config.json")\nwith open(path, "w") as file:\n    file.write("1")\n'
    found, said = init("", "", after=after, above=above)
    assert found["checkpoint"]["include"] == ["c_*.pt"], said


def test_a_small_file_that_nothing_reads_is_not(init) -> None:
    found, said = init("", "", after=WRITES % "log.txt")
    assert found["checkpoint"]["include"] == ["c_*.pt"], said


@pytest.mark.parametrize(("turn", "said_so"), [("range(9)", True), ("range(start, 9)", False)])
def test_a_loop_that_counts_from_0_whatever_was_loaded(turn: str, said_so: bool, init) -> None:
    _, said = init(RESUME, f"    if args.resume:\n{LOAD % 'args.resume'}", loop=turn)
    assert ("counts from 0 whatever was loaded: a restart takes all turns again" in said) == said_so, said


@pytest.mark.parametrize(
    ("given", "argv", "gang"),
    [
        ("devices=4", (), (1, 4)),
        ("devices=a.devices, num_nodes=a.nodes", ("--", "--devices", "8", "--nodes", "2"), (2, 8)),
    ],
)
def test_a_fabric_gets_the_ranks_that_it_is_told(given: str, argv, gang, argosy, tmp_path) -> None:
    parser = "import argparse, torch\nfrom lightning.fabric import Fabric\np = argparse.ArgumentParser()\n"
    parser += 'p.add_argument("--devices", type=int, default=1)\np.add_argument("--nodes", type=int, default=1)\n'
    script = f"{parser}a = p.parse_args()\nfabric = Fabric({given})\nfabric.launch()\n"
    (tmp_path / "train.py").write_text(f"{script}fabric.save('out/a.ckpt', {{'epoch': 1}})\n")
    assert argosy("init", "train.py", *argv)[0] == 0
    found = tomllib.loads((tmp_path / "run.toml").read_text())["gang"]
    assert (found["nnodes"], found["nproc_per_node"]) == gang


def test_a_file_of_settings_as_configargparse_has_it_says_the_folder(init, tmp_path) -> None:
    (tmp_path / "small.txt").write_text("# of a run\nout = ./mine/small  # here\nsteps = 9\n")
    parser = 'import configargparse\np = configargparse.ArgumentParser()\np.add_argument("--out", default="out")\n'
    flags = f'{parser}p.add_argument("--config", is_config_file=True)'
    found, said = init(flags, "", "--", "--config", "small.txt")
    assert found["checkpoint"]["path"] == "mine/small", said
