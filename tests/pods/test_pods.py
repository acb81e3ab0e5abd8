"""A pod ends with everything it started, whoever dies first, and sees only its own disk."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from argosy.steps.contract import env
from argosy.steps.pods import isolation, processes
from argosy.steps.pods import pod as pods
from argosy.steps.pods.leftovers import sweep
from argosy.steps.pods.pod import Pod, PodEnding, PodSpec, adopt, start

Make = Callable[..., Pod]


@pytest.fixture
def token() -> Iterator[str]:
    own = f"test-{uuid.uuid4().hex}"
    yield own
    assert sweep(own) == [], "a pod left processes behind"


@pytest.fixture
def make(tmp_path: Path, token: str) -> Make:
    def _make(script: str, name: str = "pod", **options: object) -> Pod:
        given = {"env": {"PATH": os.environ["PATH"]}, **options}
        spec = PodSpec(
            name=name,
            command=("sh", "-c", script),
            root=tmp_path / name / "root",
            token=f"{token}-{name}",
            log=tmp_path / name / "log",
            folder=tmp_path / name,
            **given,  # type: ignore[arg-type]
        )
        return start(spec)

    return _make


def wait(pod: Pod, seconds: float = 20) -> PodEnding:
    deadline = time.monotonic() + seconds
    while (ending := pod.poll()) is None:
        assert time.monotonic() < deadline, "the pod did not end"
        time.sleep(0.005)
    return ending


def test_exit_code_and_output(make: Make, tmp_path: Path) -> None:
    ending = wait(make("echo out; echo err >&2; exit 7"))
    assert (ending.exit_code, ending.signal) == (7, None)
    assert (tmp_path / "pod/log").read_text() == "out\nerr\n"


def test_signal_is_told_from_exit_code(make: Make) -> None:
    assert wait(make("kill -SEGV $$")).signal == 11


def test_orphans_in_other_sessions_end_with_the_main_process(make: Make, token: str) -> None:
    began = time.time()
    ending = wait(make("setsid sleep 60 & (env -i setsid sleep 61 &) ; exit 0"))
    assert processes.carrying(env.POD_TOKEN, token) == set()
    assert began <= ending.time <= time.time()


FORKS = """
import os, time
for _ in range(3):
    if os.fork():
        os._exit(0)
os.setsid()
time.sleep(60)
"""


def test_who_forks_while_the_pod_ends_does_not_outlive_it(make: Make, token: str) -> None:
    """A look at all processes that is under way misses one that was forked by one that is gone by then."""
    command = f"exec {sys.executable} -I -S -c '{FORKS}'"
    for pod in [make(command, f"pod-{number}") for number in range(12)]:
        assert wait(pod).exit_code == 0
    assert processes.carrying(env.POD_TOKEN, token) == set()


def test_kill_ends_children_without_our_environment(make: Make, tmp_path: Path) -> None:
    large = (
        "import os, sys, time; held = b'1' * (300 << 20); open('pid', 'w').write(f'{os.getpid()}\\n'); time.sleep(60)"
    )
    pod = make(f'cd {tmp_path}; env -i setsid {sys.executable} -c "{large}" & sleep 60')
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith("\n"):
        time.sleep(0.005)
    orphan = int((tmp_path / "pid").read_text())
    ending = pod.kill()
    assert ending.signal == 9
    assert processes.start_time(orphan) is None


def test_sigterm_reaches_the_main_process(make: Make, tmp_path: Path) -> None:
    pod = make(f"trap 'exit 9' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done")
    while not (tmp_path / "ready").exists():
        time.sleep(0.005)
    assert pod.stop(10).exit_code == 9


HELD = """
import ctypes, io, os, runpy, sys
given = io.StringIO(sys.stdin.read())
os.dup2(os.open({fifo!r}, os.O_RDWR), 0)
libc = ctypes.CDLL(None)
libc.__register_atfork(None, None, libc.getchar, None)
sys.stdin = given
runpy.run_path({init!r}, run_name="__main__")
"""


def test_a_sigterm_that_finds_the_main_process_just_forked_is_not_lost(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo, held = tmp_path / "fifo", tmp_path / "held.py"
    os.mkfifo(fifo)
    held.write_text(HELD.format(fifo=str(fifo), init=str(pods._INIT)))
    # The fork waits inside libc for a byte, as on a busy machine for a core; Python then drops what its handlers noted.
    monkeypatch.setattr(pods, "_INIT", held)
    pod = make("sleep 60")
    main = json.loads((tmp_path / "pod" / "process.json").read_text())["main"]
    pod.signal(signal.SIGTERM)
    deadline = time.monotonic() + 20
    while not _waits(main, signal.SIGTERM):
        assert time.monotonic() < deadline, "the main process was not sent it, or has lost it"
        time.sleep(0.005)
    fifo.write_bytes(b"!")
    assert wait(pod).signal == signal.SIGTERM


def _waits(pid: int, number: int) -> bool:
    """Whether the kernel keeps the signal for a process that blocks it."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(status["ShdPnd"], 16) >> number - 1 & 1)


def test_a_pod_that_ignores_sigterm_is_killed_after_its_grace(make: Make, tmp_path: Path) -> None:
    pod = make(f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done")
    while not (tmp_path / "ready").exists():
        time.sleep(0.005)
    assert pod.stop(0.3).signal == 9


def test_adopted_pod_reports_the_ending(make: Make, tmp_path: Path) -> None:
    started = make("sleep 0.2; exit 5")
    adopted = adopt(tmp_path / "pod")
    assert adopted is not None
    assert wait(adopted).exit_code == 5
    assert wait(started).exit_code == 5


def test_a_pod_that_ends_while_it_is_looked_for_was_started(tmp_path: Path) -> None:
    class EndsWhenAsked:
        """The worst moment: it writes its record and ends between two looks."""

        def poll(self) -> int:
            (tmp_path / "process.json").write_text(json.dumps({"pid": 1, "start_time": 1, "token": "t"}))
            return 0

    assert pods._await(tmp_path, EndsWhenAsked()).pid == 1  # type: ignore[arg-type]


def test_missing_command_is_127_with_its_name(make: Make, tmp_path: Path, token: str) -> None:
    spec = PodSpec(
        name="x", command=("no-such-program",), env={"PATH": "/usr/bin"}, root=tmp_path / "r", token=token,
        log=tmp_path / "log", folder=tmp_path / "f",
    )  # fmt: skip
    assert wait(start(spec)).exit_code == 127
    assert "no-such-program" in (tmp_path / "log").read_text()


STARTER = """
import os, sys, time
from pathlib import Path
from argosy.steps.pods.pod import PodSpec, start
folder, token = Path(sys.argv[1]), sys.argv[2]
read, write = os.pipe()
start(PodSpec(name="l", command=("sh", "-c", "setsid sleep 60 & sleep 61"), env=dict(PATH=os.environ["PATH"]),
              root=folder / "root", token=token, log=folder / "log", folder=folder), lifeline=read)
print("up", flush=True)
time.sleep(60)
"""


def test_nothing_survives_the_engine(tmp_path: Path, token: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path / "l"), token], stdout=subprocess.PIPE
    ) as engine:
        assert engine.stdout is not None
        engine.stdout.readline()
        assert len(processes.carrying(env.POD_TOKEN, token)) >= 2
        engine.kill()
    pod = adopt(tmp_path / "l")
    assert pod is not None
    assert wait(pod).lost
    assert processes.carrying(env.POD_TOKEN, token) == set()


@pytest.mark.skipif(not isolation.is_possible(), reason="this machine allows no mount namespaces")
def test_two_isolated_pods_do_not_see_each_others_disk(make: Make, tmp_path: Path) -> None:
    shared = {"/vol": tmp_path / "vol"}
    assert wait(make("echo secret > /tmp/a && echo a > /vol/a", "a", isolate=True, mounts=shared)).exit_code == 0
    ending = wait(make("cat /vol/a; cat /tmp/a", "b", isolate=True, mounts=shared))
    assert ending.exit_code == 1
    assert "secret" not in (tmp_path / "b/log").read_text()
    assert (tmp_path / "b/log").read_text().startswith("a\n")
    assert (tmp_path / "a" / "root" / "tmp/a").read_text() == "secret\n"


@pytest.mark.skipif(not isolation.is_possible(), reason="this machine allows no mount namespaces")
def test_an_isolated_pod_cannot_write_the_machines_files(make: Make) -> None:
    target = f"/usr/argosy-test-{uuid.uuid4().hex}"
    assert wait(make(f"touch {target}", isolate=True)).exit_code != 0
    assert not Path(target).exists()


@pytest.mark.skipif(not isolation.is_possible(), reason="this machine allows no mount namespaces")
def test_an_isolated_pod_has_a_termination_log_of_its_own_and_devices(make: Make, tmp_path: Path) -> None:
    (tmp_path / "message").touch()
    script = "echo told > /dev/termination-log && head -c 4 /dev/urandom > /dev/null && echo x > /dev/shm/argosy-$$"
    before = Path("/dev/termination-log").exists()
    pod = make(script + "; rm /dev/shm/argosy-$$", isolate=True, mounts={"/dev/termination-log": tmp_path / "message"})
    assert wait(pod).exit_code == 0
    assert (tmp_path / "message").read_text() == "told\n"
    assert Path("/dev/termination-log").exists() == before


@pytest.mark.skipif(not isolation.is_possible(), reason="this machine allows no mount namespaces")
def test_an_isolated_pod_finds_an_interpreter_behind_links_in_tmp(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, target in (("one", os.path.realpath(sys.executable)), ("two", str(tmp_path / "one" / "python3"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "python3").symlink_to(target)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "two" / "python3"))
    ending = wait(make(f"{sys.executable} -I -S -c 'print(41 + 1)'", isolate=True))
    assert (ending.exit_code, (tmp_path / "pod/log").read_text()) == (0, "42\n")


def test_sweep_refuses_a_prefix_that_could_meet_others() -> None:
    with pytest.raises(ValueError, match="too short"):
        sweep("a")


NESTED = """
import os, sys
from pathlib import Path
from argosy.steps.pods.pod import PodSpec, start
folder, token = Path(sys.argv[1]), sys.argv[2]
start(PodSpec(name="inner", command=("sleep", "60"), env=dict(PATH=os.environ["PATH"]),
              root=folder / "root", token=token, log=folder / "log", folder=folder))
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("how", ["dies", "is killed"])
def test_a_pod_started_by_a_pod_outlives_it(make: Make, tmp_path: Path, token: str, how: str) -> None:
    outer_end = "" if how == "dies" else "; sleep 60"
    (tmp_path / "nested.py").write_text(NESTED)
    command = f"{sys.executable} {tmp_path}/nested.py {tmp_path}/inner {token}-pod/inner{outer_end}; exit 3"
    outer = make(command)
    deadline = time.monotonic() + 20
    while (inner := adopt(tmp_path / "inner")) is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    ending = wait(outer) if how == "dies" else outer.kill()
    assert ending.exit_code == (3 if how == "dies" else None)
    assert inner.poll() is None
    assert inner.kill().signal == 9


def test_a_main_process_dies_with_the_first_even_when_nobody_looks(make: Make, tmp_path: Path, token: str) -> None:
    pod = make("exec sleep 60")
    main = json.loads((tmp_path / "pod/process.json").read_text())["main"]
    os.kill(pod.pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while processes.start_time(main) is not None:
        assert time.monotonic() < deadline, "it would go on without a pod: a supervisor would make gang after gang"
        time.sleep(0.005)
    assert pod.poll() is not None


def test_no_file_keeps_the_environment(make: Make, tmp_path: Path) -> None:
    canary = uuid.uuid4().hex
    pod = make('test -n "$SECRET"', env={"PATH": os.environ["PATH"], "SECRET": canary})
    assert wait(pod).exit_code == 0
    holding = [str(path) for path in tmp_path.rglob("*") if path.is_file() and canary.encode() in path.read_bytes()]
    assert holding == []


def test_a_deep_pod_has_a_short_place_for_its_sockets(make: Make, tmp_path: Path) -> None:
    deep = "/".join(["a-long-name-of-a-run-as-people-have-them"] * 3)
    script = (
        "import multiprocessing.connection as c, multiprocessing.util as u, os, pathlib\n"
        "pathlib.Path(os.environ['TMPDIR'], 'mine').touch()\n"
        "print(c.Listener(family='AF_UNIX').address, u.get_temp_dir())\n"
    )
    temporary = str(tmp_path / deep / "root/tmp")
    own = {"PATH": os.environ["PATH"], "TMPDIR": temporary}
    of_others = Path("/tmp", f"argosy-{os.getuid()}", uuid.uuid4().hex[:12])  # its folder is seen in its container only
    of_others.parent.mkdir(mode=0o700, exist_ok=True)
    of_others.symlink_to(tmp_path / "elsewhere")
    pod = make(f'{sys.executable} -c "{script}"', name=deep, env=own)
    said = tmp_path / deep / "log"
    assert wait(pod, 90).exit_code == 0, said.read_text()
    assert Path(temporary, "mine").exists()
    link = Path(said.read_text().split()[0]).parents[1]
    assert len(str(link)) < 40
    assert not link.is_symlink()
    assert of_others.is_symlink()
    of_others.unlink()


LEADERLESS = """
import ctypes, socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=time.sleep, args=(60,)).start()
print(listener.getsockname()[1], flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_lives_as_long_as_its_last_thread() -> None:
    """Its first thread is a zombie, as in a killed program whose other threads still end: its port is taken."""
    with subprocess.Popen([sys.executable, "-c", LEADERLESS], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            while processes.state(process.pid) != "Z":
                time.sleep(0.01)
            assert processes.start_time(process.pid) is not None
            with pytest.raises(OSError, match="in use"):
                socket.create_server(("127.0.0.1", port))
        finally:
            process.kill()
    assert processes.start_time(process.pid) is None


def test_what_goes_slowly_is_waited_for_as_long_as_it_becomes_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GONE_SECONDS", 0.3)
    rounds = iter([4, 3, 2, 1, 0])

    def found() -> set[int]:
        time.sleep(0.15)  # so that all rounds together last longer than GONE_SECONDS
        return {os.posix_spawnp("sleep", ["sleep", "60"], os.environ) for _ in range(next(rounds))}

    assert len(processes.kill_all(found)) == 10
