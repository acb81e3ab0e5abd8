"""Command lines as guides have them: what a rank is started with, and what is said of the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.imports.account import Account

MANIFEST = Path(__file__).with_name("manifests") / "mpijob-v2beta1.yaml"
Imported = Callable[..., tuple[dict[str, Any], Account]]
Job = Callable[..., dict[str, Any]]
GPUS = {"resources": {"limits": {"nvidia.com/gpu": 4, "memory": "64Gi"}}}


def shell(script: str, *words: str, **fields: Any) -> dict[str, Any]:
    return {"command": ["/bin/bash", "-lc"], "args": [script, *words], **fields}


ARGV = {
    "args after command": (
        {"command": ["torchrun"], "args": ["--nproc_per_node=2", "/a/t.py", "--lr", "1"]}, "/a/t.py --lr 1"),
    "no command": ({"args": ["torchrun", "--nnodes", "2", "/a/t.py"]}, "/a/t.py"),
    "python": ({"command": ["python3", "-u", "-W", "ignore", "/a/t.py", "-x"]}, "/a/t.py -x"),
    "python module": ({"command": ["python", "-m", "pkg.train", "--a"]}, "-m pkg.train --a"),
    "torchrun module": ({"command": ["torchrun", "--nproc-per-node", "4", "-m", "pkg.train", "x"]}, "-m pkg.train x"),
    "run as a module": (
        {"command": ["/usr/bin/python3.11", "-m", "torch.distributed.run", "--standalone", "/a/t.py"]}, "/a/t.py"),
    "launch": (
        {"command": ["python", "-m", "torch.distributed.launch", "--use_env", "--nproc_per_node=4", "/a/t.py"]},
        "/a/t.py",
    ),
    "two dashes": ({"command": ["torchrun", "--nnodes=2", "--", "/a/t.py", "--", "y"]}, "/a/t.py -- y"),
    "tini": ({"command": ["/usr/bin/tini", "--", "torchrun", "/a/t.py"]}, "/a/t.py"),
    "conda": ({"command": ["conda", "run", "-n", "x", "--no-capture-output", "python", "/a/t.py"]}, "/a/t.py"),
    "timeout": ({"command": ["timeout", "-k", "5", "3600", "torchrun", "/a/t.py"]}, "/a/t.py"),
    "numactl": ({"command": ["numactl", "--cpunodebind=0", "--membind=0", "python", "/a/t.py"]}, "/a/t.py"),
    "kubelet's variable": (
        {"command": ["torchrun", "/a/t.py", "--out=$(OUT)/x", "$$(OUT)"], "env": [{"name": "OUT", "value": "/o"}]},
        "/a/t.py --out=/o/x FILL-IN",
    ),
    "accelerate": (
        {"command": ["accelerate", "launch", "--multi_gpu", "--mixed_precision=bf16", "--num_processes", "8",
                     "/a/t.py", "-s"]},
        "/a/t.py -s",
    ),
    "accelerate module": (
        {"command": ["accelerate", "launch", "--use_deepspeed", "-m", "pkg.t", "--b"]}, "-m pkg.t --b"),
    "accelerate's module": (
        {"command": ["python", "-m", "accelerate.commands.launch", "--cpu", "/a/t.py"]}, "/a/t.py"),
    "deepspeed": (
        {"command": ["deepspeed", "--hostfile=/etc/h", "--num_gpus", "4", "/a/t.py", "--deepspeed", "ds.json"]},
        "/a/t.py --deepspeed ds.json",
    ),
    "mpirun": (
        {"command": ["mpirun", "-np", "4", "--bind-to", "none", "-mca", "btl_tcp_if_include", "eth0",
                     "python", "/a/t.py"]},
        "/a/t.py",
    ),
    "mpirun with a shell": (
        {"command": ["mpirun", "-np", "4", "bash", "-c", "python /a/t.py --x 1"]}, "/a/t.py --x 1"),
    "horovodrun": ({"command": ["horovodrun", "-np", "4", "-H", "a:2,b:2", "python", "/a/t.py"]}, "/a/t.py"),
    "and": (shell("cd /w && export A=1 && torchrun t.py"), "t.py"),
    "semicolons": (shell("ulimit -l unlimited; ulimit -n 65536; python -u /a/t.py; echo $?"), "/a/t.py"),
    "continued lines": (shell("torchrun \\\n  --nnodes 2 \\\n  /a/t.py \\\n  --x 1 \\\n"), "/a/t.py --x 1"),
    "quotes": (
        shell("""torchrun /a/t.py --n "a 'b'" 'c "d"' e\\ f ''"""), ("/a/t.py", "--n", "a 'b'", 'c "d"', "e f", "")),
    "a quoted line break": (shell("torchrun /a/t.py --n 'a b' # why\n"), ("/a/t.py", "--n", "a b")),
    "defaults": (shell("torchrun /a/t.py ${A:-1} ${B-2} ${C:-} --d=${D:-x/y}"), "/a/t.py 1 2 --d=x/y"),
    "set before": (shell("LR=0.1\nEXTRA='--wd 3 --b'\ntorchrun /a/t.py --lr $LR $EXTRA \"$EXTRA\""),
                   ("/a/t.py", "--lr", "0.1", "--wd", "3", "--b", "--wd 3 --b")),
    "all in a variable": (shell("CMD='/a/t.py --lr 1'; torchrun $CMD --x"), "/a/t.py --lr 1 --x"),
    "the shell's arguments": (shell('exec torchrun /a/t.py "$@"', "--", "--a", "b c"), ("/a/t.py", "--a", "b c")),
    "no arguments of the shell": (shell('torchrun /a/t.py "$@" $* x'), "/a/t.py x"),
    "numbered": (shell("torchrun /a/t.py $1 ${2}", "name", "one", "two"), "/a/t.py one two"),
    "a pipe": (shell("set -o pipefail; torchrun /a/t.py 2>&1 | tee /l/log"), "/a/t.py"),
    "a file": (shell("torchrun /a/t.py > /l/out 2> /l/err < /dev/null"), "/a/t.py"),
    "background": (shell("torchrun /a/t.py --x & wait $!"), "/a/t.py --x"),
    "if": (shell('if [ "$A" = 1 ]; then\n torchrun /a/t.py 1\nelse\n torchrun /a/t.py 2\nfi'), "/a/t.py 1"),
    "a loop": (shell("for i in 1 2 3; do torchrun /a/t.py && break; sleep 5; done"), "/a/t.py"),
    "a heredoc": (
        shell("cat > /tmp/c.json <<'EOF'\ntorchrun /not/this.py\nEOF\ntorchrun /a/t.py --c /tmp/c.json"),
        "/a/t.py --c /tmp/c.json",
    ),
    "a shell in a shell": (shell("bash -c 'torchrun /a/t.py'"), "/a/t.py"),
    "env": (shell("env A=1 B='x y' torchrun /a/t.py"), "/a/t.py"),
    "two scripts": (shell("python prepare.py && torchrun /a/t.py"), "/a/t.py"),
    "the last of two": (shell("python /a/prepare.py && python /a/t.py"), "/a/t.py"),
    "a substitution": (shell("torchrun --master_addr=$(hostname -i) --node_rank=${HOSTNAME##*-} /a/t.py"), "/a/t.py"),
    "up": ({"command": ["python", "../t.py"], "workingDir": "/w/x"}, "/w/t.py"),
    "here": ({"command": ["python", "./x/t.py"], "workingDir": "/w"}, "x/t.py"),
}  # fmt: skip


@pytest.mark.parametrize("name", ARGV)
def test_a_rank_is_started_with_what_the_manifest_starts(imported: Imported, job: Job, name: str) -> None:
    container, expected = ARGV[name]
    run, _ = imported(job({**GPUS, **container}))
    entry = ["-m", run["module"]] if "module" in run else [run["script"]]
    words = expected.split() if isinstance(expected, str) else list(expected)
    assert [*entry, *run.get("args", [])] == words


@pytest.mark.parametrize(
    ("command", "ranks"),
    [
        ("torchrun --nproc_per_node=2 /a/t.py", 2),
        ("torchrun --nproc-per-node gpu /a/t.py", 4),
        ("torchrun --nproc_per_node auto /a/t.py", 4),
        ("torchrun --nproc_per_node=$NPROC /a/t.py", 4),
        ("torchrun /a/t.py", 4),
        ("torchrun --nproc_per_node=16 /a/t.py", 4),
        ("accelerate launch --num_processes=4 --num_machines=2 /a/t.py", 2),
        ("mpirun -np 8 python /a/t.py", 4),
        ("python /a/t.py", 4),
    ],
)
def test_ranks_of_a_node(imported: Imported, job: Job, command: str, ranks: int) -> None:
    run, _ = imported(job(shell(command, **GPUS)))
    assert run["gang"] | {"nnodes": 2, "nproc_per_node": ranks} == run["gang"]


def test_a_node_without_gpus_has_as_many_ranks_as_it_is_told(imported: Imported, job: Job) -> None:
    assert imported(job(shell("torchrun --nproc_per_node=6 /a/t.py")))[0]["gang"]["nproc_per_node"] == 6
    assert imported(job(shell("torchrun --nproc_per_node=cpu /a/t.py")))[0]["gang"]["nproc_per_node"] == 1


def test_nodes_of_an_elastic_torchrun(imported: Imported, job: Job) -> None:
    run, _ = imported(job(shell("torchrun --nnodes=1:2 --max-restarts=3 /a/t.py")))
    assert run["gang"]["nnodes"] == "1:2"


def test_variables_are_those_that_hold_where_it_is_started(imported: Imported, job: Job) -> None:
    script = """
        A=1                      # the shell's own
        export B=2 C="$A and ${X}"
        D=4; export D
        X=changed
        if true; then export E=5; fi
        F=6 G=$UNKNOWN torchrun /a/t.py
        export H=8
    """
    env = [{"name": "X", "value": "x"}, {"name": "RANK", "value": "0"}]
    run, account = imported(job(shell(script, env=env)))
    assert run["env"] == {"B": "2", "C": "1 and x", "D": "4", "X": "changed", "F": "6"}
    assert "by hand" in account.why("E=5")
    assert "by hand" in account.why("G=$UNKNOWN")
    assert "env[1]" in account.why("set for each rank")


def test_a_variable_of_an_argument_list_is_said_to_be_kept(imported: Imported) -> None:
    """It stood in [env], and the account said that argosy starts the script without a shell."""
    manifest = yaml.safe_load(MANIFEST.read_text())
    launcher = manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher.pop("args", None)
    launcher["command"] = ["mpirun", "-np", "4", "-x", "A=1", "-x", "RANK=0", "python", "/a/t.py"]
    run, account = imported(manifest)
    assert run["env"]["A"] == "1"
    assert "kept" in account.why("command[4]: env.A")
    assert "set for each rank" in account.why("command[6]")


@pytest.mark.parametrize(
    ("script", "part", "fate", "why"),
    [
        ("pip install -e . && torchrun /a/t.py", "pip install -e .", "by hand", "image"),
        ("python3 -m pip install x; python /a/t.py", "python3 -m pip install x", "by hand", "image"),
        ("aws s3 sync s3://b/d /data\ntorchrun /a/t.py", "aws s3 sync s3://b/d /data", "by hand", "[dataset]"),
        ("python prepare.py; torchrun /a/t.py", "python prepare.py", "not representable", "one script"),
        ("mkdir -p /out; torchrun /a/t.py", "mkdir -p /out", "not representable", "one script"),
        ("source /opt/venv/bin/activate; torchrun /a/t.py", "source /opt/venv/bin/activate", "by hand", "not known"),
        ("echo hello > /tmp/x; torchrun /a/t.py", "echo hello", "not representable", "/tmp/x"),
        ("nvidia-smi; torchrun /a/t.py", "nvidia-smi", "changed", "nothing for the training"),
        ("torchrun --no-such-option=3 /a/t.py", "--no-such-option=3", "not representable", "no place"),
        ("torchrun --rdzv_conf timeout=900 /a/t.py", "--rdzv_conf timeout=900", "changed", "channel"),
        ("torchrun /a/t.py --id $(date)", "$(date)", "by hand", "FILL-IN"),
        ("cd /w; torchrun t.py", "cd /w", "changed", "working_dir"),
    ],
)
def test_each_command_of_a_script_is_accounted_for(
    imported: Imported, job: Job, script: str, part: str, fate: str, why: str
) -> None:
    _, account = imported(job(shell(script)))
    found = [each for each in account.entries if each["part"] == part]
    assert [each["fate"] for each in found] == [fate]
    assert why in found[0]["why"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("for i in 1 2; do torchrun /a/t.py; done", "the training stands in a loop"),
        ("if [ 1 ]; then torchrun /a/t.py; fi", "the training stands in if"),
        ("false || torchrun /a/t.py", "the training stands in what follows ||"),
        ("torchrun /a/t.py 'unclosed", "could not be read whole"),
        ("deepspeed /a/t.py", "read LOCAL_RANK"),
        ("accelerate launch --config_file /c.yaml /a/t.py", "accelerate's config file"),
        ("python /a/t.py", "one process has 4 GPUs today"),
        ("torchrun t.py", "WORKDIR"),
    ],
)
def test_what_the_author_must_know_is_said(imported: Imported, job: Job, script: str, why: str) -> None:
    _, account = imported(job(shell(script, **GPUS)))
    assert "by hand" in account.why(why)


@pytest.mark.parametrize(
    ("container", "why"),
    [
        ({}, "no command, so only its image knows what it runs"),
        ({"command": ["/app/entrypoint.sh", "--x"]}, "'/app/entrypoint.sh'"),
        ({"command": ["bash", "/app/run.sh"]}, "'/app/run.sh'"),
        ({"command": "python train.py"}, "lists of words"),
        ({"command": ["python train.py"]}, "starts no Python script"),
        ({"command": ["python", "-c", "print(1)"]}, "starts no Python script"),
        ({"command": ["tune", "run", "lora"]}, "'tune run lora'"),
        ({"command": ["mpirun", "-np", "2", "/opt/nccl-tests/build/all_reduce_perf"]}, "starts no Python script"),
        ({"command": ["torchrun", "--no-python", "/app/run.sh"]}, "argosy starts Python"),
        ({"command": ["bash", "-c", "torchrun $(which tune) run"]}, "names no script"),
    ],
)
def test_what_only_the_image_knows_is_asked_for(
    argosy: Callable[..., tuple[int, str, str]], job: Job, tmp_path: Any, container: dict[str, Any], why: str
) -> None:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job(container)))
    code, out, err = argosy("import", "job.yaml")
    assert (code, out) == (2, "")
    assert why in err
    assert "--script PATH" in err
    code, out, err = argosy("import", "job.yaml", "--script", "/app/train.py")
    if "--no-python" not in str(container) and "$(which" not in str(container):
        assert (code, 'script = "/app/train.py"' in out) == (0, True), err


def test_arguments_of_the_image_are_those_of_the_script_that_is_named(imported: Imported, job: Job) -> None:
    made = job({"args": ["--rounds=10", "--name=$(POD)"]})
    run, account = imported(made, script="/a/main.py")
    assert (run["script"], run["args"]) == ("/a/main.py", ["--rounds=10", "FILL-IN"])
    assert account.fates_in("spec.template.spec.containers[0].args[0]") == {"kept"}
    assert account.fates_in("spec.template.spec.containers[0].args[1]") == {"by hand"}


def test_an_address_of_a_pod_that_no_gang_has_is_left_to_the_author(imported: Imported) -> None:
    made = yaml.safe_load(MANIFEST.read_text())
    args = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["args"]
    meets = "--dist-url=tcp://horovod-bert-worker-0.horovod-bert-worker:23456"
    args += [meets, "--out=my-horovod-bert-worker-0", "--name=horovod-bert"]
    run, account = imported(made)
    assert run["args"] == ["--batch-size", "16", *args[-3:]]
    (told,) = (each for each in account.entries if each["fate"] == "by hand" and each["into"] == "args")
    assert told["path"].endswith(".args[22]")
    assert told["why"] == (
        "no gang has a pod horovod-bert-worker-0: ranks meet at MASTER_ADDR and MASTER_PORT (torch: env://)"
    )
    assert "# horovod-bert-worker-0 is no pod of the gang" in account.record["toml"]
