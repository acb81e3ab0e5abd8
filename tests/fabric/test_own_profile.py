"""A profile of one's own: a file beside run.toml whose content travels with the run."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.steps.contract.errors import InputError
from argosy.steps.gang.manifest import check_manifest, with_identity
from argosy.workflows.gang.documents import gang_yaml
from argosy.workflows.spec.load import load_run
from argosy.workflows.spec.run import warnings
from tests.fabric.cases import case, env_of, main, run_on, template
from tests.starts import argosy

OURS = """
name = "our-cluster"
about = "Two racks of ours."
includes = ["ib-sriov"]

[[parameters]]
name = "rdma_resource"
kind = "resource"
about = "ours"
default = "example.com/hca"

[[parameters]]
name = "nics"
kind = "count"
about = "ours"
default = "4"

[[env]]
name = "NCCL_IB_HCA"
value = "=mlx5_0,mlx5_1,mlx5_6,mlx5_7"

[[env]]
name = "NCCL_IB_SL"
value = "3"
must = "equal"
why = "Our switches drop the others"
"""
RUN = """
name = "llm"
script = "train.py"
code = ""
[gang]
nnodes = 2
nproc_per_node = 4
fabric = "./fabrics/ours.toml"
[gang.resources]
gpu = 4
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fabrics").mkdir()
    (tmp_path / "fabrics" / "ours.toml").write_text(OURS)
    (tmp_path / "run.toml").write_text(RUN)
    return tmp_path


def compiled(folder: Path) -> subprocess.CompletedProcess[str]:
    return argosy(Path.cwd(), "compile", str(folder / "run.toml"))


def test_it_is_found_beside_the_file_and_travels_with_the_run(folder: Path) -> None:
    run = load_run(folder / "run.toml")
    (folder / "fabrics" / "ours.toml").unlink()
    assert main(run)["resources"]["limits"]["example.com/hca"] == "4"
    env = env_of(run)
    assert (env["NCCL_NET"], env["NCCL_IB_SL"]) == ("IB", "3")
    assert env["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1,mlx5_6,mlx5_7"
    assert template(run)["metadata"]["labels"]["sidecar.istio.io/inject"] == "false"
    assert '"profile":"our-cluster"' in " ".join(main(run)["args"])


def test_its_content_is_part_of_what_makes_two_runs_the_same(folder: Path) -> None:
    first = load_run(folder / "run.toml").digest()
    assert load_run(folder / "run.toml").digest() == first
    (folder / "fabrics" / "ours.toml").write_text(OURS.replace('"3"', '"4"'))
    assert load_run(folder / "run.toml").digest() != first


def test_it_refuses_like_ours(folder: Path) -> None:
    (folder / "run.toml").write_text(RUN.replace('code = ""', 'code = ""\nenv = { NCCL_IB_SL = "0" }'))
    done = compiled(folder)
    assert done.returncode == 2
    assert "env.NCCL_IB_SL = '0': must be '3' with fabric our-cluster: Our switches drop the others" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_line_compiles_it(folder: Path) -> None:
    done = compiled(folder)
    assert done.returncode == 0, done.stderr
    assert "example.com/hca" in done.stdout
    assert "warning: gang.fabric = 'our-cluster': not run on such hardware here" in done.stderr


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"colour": "green"}, "cannot be used: colour: there is no such field"),
    ({"env": [{"name": "A B", "value": "x"}]}, "cannot be used: env.0.name = 'A B'"),
    ({"env": [{"name": "A"}]}, "cannot be used: env.0.value: is required"),
    ({"env": [{"name": "ARGOSY_X", "value": "x"}]}, "env.ARGOSY_X: is set by argosy or Argo"),
    ({"env": [{"name": "RANK", "value": "0"}]}, "env.RANK: is set by the launcher"),
    ({"env": [{"name": "A", "value": "{{workflow.uid}}"}]}, "must not contain '{{'"),
    ({"env": [{"name": "A", "value": "{size}"}]}, "'{size}': names no parameter; describe it in parameters"),
    ({"env": [{"name": "A", "value": "b", "source": "nowhere"}]}, "'nowhere': is no source; describe it in [sources]"),
    ({"includes": ["ib-srov"]}, "'ib-srov': cannot be included; there are aws-efa"),
    ({"includes": ["mine"]}, "'mine': cannot be included"),
    ({"volumes": [{"name": "shm", "volume": {"emptyDir": {}}}]}, "'shm' is the name of a volume that every pod has"),
    (
        {"volumes": [{"name": "v", "volume": {"emptyDir": {}}, "mount": {"mountPath": "/argosy/data"}}]},
        "'/argosy/data' is no place to mount at",
    ),
    ({"sidecars": [{"name": "main", "container": {"image": "a/b"}}]}, "a name other than 'main'"),
    ({"sidecars": [{"name": "s", "container": {"image": "a/b", "args": ["$(X)"]}}]}, "must not contain '$('"),
    ({"resources": [{"name": "a.b/c", "value": "many"}]}, "'many': is no quantity of a.b/c"),
    ({"shm": [{"value": "big"}]}, "'big': is no quantity of shm"),
    ({"pod": [{"name": "hostPID", "value": True}]}, "cannot be used: pod.0.name = 'hostPID': must be"),
    ({"expect": [{"name": "gdr", "value": "yes"}]}, "gdr and nvls are true or false"),
    ({"expect": [{"name": "nics", "value": "all"}]}, "is no number"),
    ({"sources": {"s": {"url": "ftp://x", "date": "2026-11-22"}}}, "cannot be used: sources.s.url"),
    ({"gpus": "all"}, "fabric_profile.gpus = 'all': is no number"),
]


@pytest.mark.parametrize(("change", "said"), WRONG)
def test_what_is_wrong_with_it_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        run_on({"fabric_profile": {"name": "mine", "about": "Mine.", **change}})
    assert said in str(refused.value)
    assert str(refused.value).startswith("gang.fabric_profile")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, r"ours\.toml: no such file; gang\.fabric in .*run\.toml names it, relative to that file"),
        ("name = ", r"ours\.toml: not TOML"),
        ("name = 3", r"run\.toml: gang\.fabric_profile: cannot be used: name = 3: must be text"),
    ],
)
def test_a_file_that_cannot_be_used(folder: Path, text: str | None, said: str) -> None:
    path = folder / "fabrics" / "ours.toml"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(InputError, match=said):
        load_run(folder / "run.toml")


def test_both_at_once_are_refused(folder: Path) -> None:
    (folder / "run.toml").write_text(RUN + '[gang.fabric_profile]\nname = "x"\nabout = "x"\n')
    with pytest.raises(InputError, match=r"stands beside fabric_profile; give one of the two"):
        load_run(folder / "run.toml")


def test_a_container_that_ends_before_the_ranks_start() -> None:
    once = {"name": "setup", "once": True, "container": {"image": "a/b:1"}}
    stays = {"name": "daemon", "container": {"image": "a/b:2"}}
    run = run_on({"fabric_profile": {"name": "mine", "about": "Mine.", "sidecars": [once, stays]}})
    assert template(run)["spec"]["initContainers"] == [
        {"name": "setup", "image": "a/b:1"},
        {"name": "daemon", "image": "a/b:2", "restartPolicy": "Always"},
    ]


def test_a_vendors_daemon_is_not_told_the_token_of_the_channel() -> None:
    manifest = check_manifest([*yaml.safe_load_all(gang_yaml(case("gcp-a3-mega")))], "gang")
    (made,) = with_identity(manifest, name="g", attempt=0, nnodes=2, env={"ARGOSY_TOKEN": "secret"}, excluded=())
    pod = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert {"name": "ARGOSY_TOKEN", "value": "secret"} in pod["containers"][0]["env"]
    assert "secret" not in str(pod["initContainers"])


def test_on_a_cpu_shape_the_fabric_stays_behind(folder: Path) -> None:
    done = argosy(Path.cwd(), "compile", str(folder / "run.toml"), "--ranks", "2x1")
    assert done.returncode == 0, done.stderr
    assert "NCCL_NET" not in done.stdout
    assert "expected-transport" not in done.stdout


def test_notes_are_said_when_the_run_is_compiled() -> None:
    run = run_on({"fabric_profile": {"name": "mine", "about": "Mine.", "notes": [{"text": "Ask Ada for a queue"}]}})
    assert "gang.fabric = 'mine': Ask Ada for a queue" in warnings(run)
