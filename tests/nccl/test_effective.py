"""Where a variable of NCCL's comes from, by the order in which NCCL itself reads."""

from __future__ import annotations

from pathlib import Path

from argosy.steps.nccl.effective import conf_files, effective_environment


def test_the_environment_wins_then_the_first_file(tmp_path: Path) -> None:
    first, second = tmp_path / "own.conf", tmp_path / "site.conf"
    first.write_text("# NCCL_DEBUG=TRACE\nNCCL_IB_TC=41\nNCCL_SOCKET_IFNAME==eth0\nno assignment\n")
    second.write_text("NCCL_IB_TC=106\nNCCL_DEBUG=WARN\nNCCL_IB_TC=1\n")
    environ = {"NCCL_DEBUG": "INFO", "FI_PROVIDER": "efa", "TORCH_FR_BUFFER_SIZE": "2000", "HOME": "/root", "PATH": "/"}
    assert [str(each) for each in effective_environment(environ, [first, second])] == [
        "FI_PROVIDER=efa (pod)",
        "NCCL_DEBUG=INFO (pod)",
        f"NCCL_IB_TC=41 ({first})",
        f"NCCL_SOCKET_IFNAME==eth0 ({first})",
        "TORCH_FR_BUFFER_SIZE=2000 (pod)",
    ]


def test_a_named_file_stands_for_the_one_at_home() -> None:
    assert [str(path) for path in conf_files({"NCCL_CONF_FILE": "/x/y.conf"})] == ["/x/y.conf", "/etc/nccl.conf"]
    assert conf_files({})[0].name == ".nccl.conf"


def test_what_may_be_a_secret_is_not_shown() -> None:
    assert str(effective_environment({"UCX_AUTH_TOKEN": "s3cret"}, [])[0]) == "UCX_AUTH_TOKEN=*** (pod)"


def test_files_that_are_not_there_or_no_text_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.conf").write_bytes(b"\xff\xfe=\x00\n")
    assert effective_environment({}, [tmp_path / "absent", tmp_path, tmp_path / "bad.conf"]) == []
