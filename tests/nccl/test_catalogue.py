"""The data agree with the libraries that are installed here."""

from __future__ import annotations

import importlib.util
import re
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from pathlib import Path
from types import ModuleType

import pytest

from argosy.steps.nccl import catalogue, facts, images

ROOT = Path(__file__).parent.parent.parent
NCCL = next((name for name in ("nvidia-nccl-cu13", "nvidia-nccl-cu12") if importlib.util.find_spec("nvidia")), None)


def names_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("nccl_names", ROOT / "scripts/nccl_names.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed_library() -> tuple[Path, facts.Version]:
    try:
        held = distribution(NCCL or "nvidia-nccl-cu13")
    except PackageNotFoundError:
        pytest.skip("no NCCL is installed")
    file = next(file for file in held.files or [] if file.name == "libnccl.so.2")
    return Path(str(held.locate_file(file))), facts.version(held.version)


def test_every_name_of_the_installed_library_is_in_the_table() -> None:
    library, release = installed_library()
    script = names_script()
    names = {match.decode() for match in script.NAME.findall(library.read_bytes())}
    names = {name for name in names if not script.CONSTANTS.match(name)}
    table = {
        name
        for name, each in catalogue.variables().items()
        if each.first <= release and (not each.last or each.last >= release)
    }
    assert names == table


def test_a_name_that_is_glued_to_other_bytes_is_not_lost() -> None:
    assert "NCCL_PAT_ENABLE" in catalogue.variables()


def test_every_setting_is_a_name_that_nccl_reads() -> None:
    assert catalogue.settings().keys() <= catalogue.variables().keys()


def test_every_name_that_a_cloud_demands_is_read() -> None:
    clouds = ("azure", "gcp", "oci", "coreweave", "crusoe")
    assert all(catalogue.demanded_names(cloud) for cloud in clouds)
    assert set().union(*map(catalogue.demanded_names, clouds)) <= catalogue.variables().keys()


def test_the_table_of_torch_agrees_with_the_installed_torch() -> None:
    try:
        pins = [line for line in requires("torch") or [] if line.startswith("nvidia-nccl")]
    except PackageNotFoundError:
        pytest.skip("no torch is installed")
    if not pins:
        pytest.skip("a torch without CUDA")
    pinned = re.search(r"==([\d.]+)", pins[0])
    assert pinned is not None
    assert images.nccl_of_torch(facts.version(version("torch"))) == facts.Span.exactly(pinned[1])


@pytest.mark.parametrize(
    ("image", "torch", "nccl"),
    [
        ("pytorch/pytorch:2.4.1-cuda12.4-cudnn9-runtime", (2, 4, 1), (2, 20, 5)),
        ("docker.io/pytorch/pytorch:2.9.1-cuda12.8-cudnn9-devel@sha256:00", (2, 9, 1), (2, 27, 5)),
        ("ghcr.io/coreweave/nccl-tests:13.3.0-devel-ubuntu24.04-nccl2.31.2-1-d08cf2b", None, (2, 31, 2)),
        ("registry.example/train:1.4.2-torch2.6.0", (2, 6, 0), None),
        ("registry.example:5000/train:2.4.1", None, None),
        ("registry.example:5000/train", None, None),
        ("pytorch/pytorch:latest", None, None),
        (None, None, None),
    ],
)
def test_versions_of_an_image(image: str | None, torch: facts.Version | None, nccl: facts.Version | None) -> None:
    assert images.versions_of(image) == (facts.Span(torch, torch), facts.Span(nccl, nccl))
