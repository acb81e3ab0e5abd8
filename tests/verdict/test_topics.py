"""What no rule knows: whose code raised it, which module defines it, what its words are about."""

from __future__ import annotations

import re

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.evidence import read, said_in
from argosy.steps.verdict.families.frames import ELSEWHERE, FRAMES, NAMES, library_of, named_by
from argosy.steps.verdict.families.topics import TOPICS
from argosy.steps.verdict.line import Line
from argosy.steps.verdict.match import hint_of, match_line, topic_of
from argosy.workflows.diagnosis.filter import hits
from argosy.workflows.diagnosis.verdict import diagnose


def test_each_topic_is_the_first_for_its_example_that_no_rule_knows() -> None:
    for topic in TOPICS:
        assert match_line(topic.example) is None, topic
        assert topic_of(topic.example) == topic.cause, topic
        hint = hint_of(topic.example)
        assert hint is not None, topic
        assert hint.weight == Weight.HINT, topic


def test_only_a_log_without_endings_is_guessed_at() -> None:
    line = "the worker's instance was shut down by its owner"
    assert said_in([line]) == []
    assert [said.evidence.cause for said in said_in([line], guess=True)] == [Cause.PREEMPTED_EVICTED]


def test_a_rule_outweighs_a_guess() -> None:
    verdict = diagnose([[Line("a", 1, "monitor: rank 3 is unresponsive"), Line("a", 2, "Connection reset by peer")]])
    assert verdict.root.cause == Cause.HANG  # a lost peer is never a root beside anything else
    verdict = diagnose([[Line("a", 1, "monitor: rank 3 is unresponsive"), Line("a", 2, "CUDA out of memory")]])
    assert verdict.root.cause == Cause.GPU_OOM


def _raised(frame: str, words: str) -> list[str]:
    return ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', frame, "    call()", words]


@pytest.mark.parametrize(
    ("frame", "words", "cause"),
    [
        (
            '  File "/v/site-packages/botocore/client.py", line 9, in _call',
            "StrangeError: nothing known",
            "s3_throttle",
        ),
        ('  File "/v/torch/distributed/run.py", line 9, in parse_nnodes', "RuntimeError: n=4:x", "launcher_usage"),
        ('  File "/v/site-packages/wids/a.py", line 9, in b', "UnicodeDecodeError: no such byte", "data_corrupt"),
        ('  File "/v/site-packages/huggingface_hub/file.py", line 9, in get', "StrangeError: nothing", "hub_network"),
        ('  File "/v/multiprocessing/synchronize.py", line 9, in x', "OSError: [Errno 28] No space", "shm_exhausted"),
        ('  File "/v/site-packages/requests/api.py", line 9, in x', "OSError: [Errno 111] refused", "hub_network"),
        ('  File "train.py", line 9, in x', "OSError: [Errno 28] No space left on device", "disk_full"),
        ('  File "train.py", line 9, in x', "requests.exceptions.OddError: nothing known", "hub_network"),
        ('  File "train.py", line 9, in x', "azure.core.exceptions.OddError: the signature is off", "s3_access"),
        ('  File "/v/site-packages/botocore/client.py", line 9, in _call', "KeyError: 'x'", "user_exception"),
        ('  File "train.py", line 9, in x', "ValueError: the checkpoint is truncated", "checkpoint_corrupt"),
        ('  File "train.py", line 9, in x', "ValueError: GPU 3 was lost", "user_exception"),
        ('  File "train.py", line 9, in x', "TimeoutError: the read timed out", "unknown"),
        ('  File "C:\\v\\site-packages\\urllib3\\response.py", line 9, in x', "TimeoutError: x", "hub_network"),
        ('  File "/v/torch/multiprocessing/spawn.py", line 9, in join', "Exception: it said 1", "unknown"),
    ],
)
def test_whose_code_raised_tells_what_it_is_about(frame: str, words: str, cause: str) -> None:
    for lines in (_raised(frame, words), _raised(frame, words)[2:]):  # also where the log begins within a traceback
        reading = read(lines)
        assert reading is not None
        assert reading.root.evidence.cause == cause


def test_a_stack_that_was_only_printed_raises_nothing() -> None:
    stack = ['  File "train.py", line 3, in <module>', "    dump()", "all is well"]
    assert read(stack) is None


def test_what_was_thrown_says_why_the_process_aborted() -> None:
    reading = read(["terminate called", "  what():  GPU 3: out of memory, 2 GB asked", "Aborted (core dumped)"])
    assert reading is not None
    assert reading.root.evidence.cause == "gpu_oom"


def test_an_exception_is_about_its_own_words() -> None:
    line = "RuntimeError: odd shapes W0227 23:25:08.126000 227320 lost the connection to the checkpoint, corrupt"
    reading = read([line])
    assert reading is not None
    assert reading.root.evidence.cause == "user_exception"


def test_an_unfinished_traceback_is_no_words() -> None:
    stack = ["Traceback (most recent call last):", '  File "x.py", line 1, in main', "    stop(signal.SIGTERM, None)"]
    assert said_in(stack, guess=True) == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("modelscope: download of model x failed, 403 forbidden", 78),
        ("modelscope: download of model x failed, 503", 75),
        ("enroot: import of docker://team/train failed, connection reset", 75),
        ("enroot: import of docker://team/train failed, unauthorized", 78),
    ],
)
def test_who_refuses_does_so_again_and_who_is_in_trouble_does_not(line: str, code: int) -> None:
    assert diagnose([[Line("a", 1, line)]]).root.exit_code == code


@pytest.mark.parametrize(
    "line",
    [
        "sh: 1: nvcc: not found",
        'HTTP Request: HEAD https://huggingface.co/team/model/adapter_config.json "HTTP/1.1 404 Not Found"',
        "INFO tensorboardX is not installed, going on without it",
        "INFO oom_policy is set to continue",
    ],
)
def test_what_scripts_say_on_their_way_is_no_root(line: str) -> None:
    lines = [line, "train.py: step 1 done", "torch.distributed: failed (exitcode: -9) local_rank: 3 (pid: 8) of binary"]
    assert diagnose([[Line("a", number, text) for number, text in enumerate(lines, 1)]]).root.exit_code == 75


def test_what_is_tried_again_counts_when_nothing_else_is_said() -> None:
    again = "botocore: (503) when calling GetObject, retrying (attempt 2 of 5)"
    assert [said.evidence.weight for said in said_in([again])] == [Weight.CASCADE]
    verdict = diagnose([[Line("a", 1, again), Line("a", 2, "loss is nan at step 3")]])
    assert verdict.root.cause == Cause.NUMERICS_NAN


def test_the_rows_of_frames_are_regular_expressions_of_known_causes() -> None:
    assert {cause for cause, _ in (*FRAMES, *NAMES)} | set(ELSEWHERE.values()) <= set(Cause)
    for _, regex in (*FRAMES, *NAMES):
        re.compile(regex)
    assert library_of('  File "train.py", line 1, in main') is None
    assert named_by("ValueError: x") is None


def test_the_filter_lets_every_topic_through() -> None:
    assert all(hits().search(topic.example.encode()) for topic in TOPICS)


def test_the_filter_knows_words_of_every_language_and_matches_no_empty_text() -> None:
    for words in ("bash：torchrun：未找到命令", "bash: torchrun: comando não encontrado"):
        assert hits().search(words.encode()), words
    assert hits().search(b"step 1\n") is None  # a match without a length would be found again for ever


@pytest.mark.parametrize(
    ("last", "cause"),
    [
        ('  File "/v/site-packages/urllib3/connection.py", line 9, in getresponse', "hub_network"),
        ("    from .fused import kernels", "import_error"),
        ('  File "/v/torch/distributed/elastic/agent/server/api.py", line 9, in run', "unknown"),
        ('  File "train.py", line 9, in step', "unknown"),
        ('    raise ValueError("rank {} out of range ({})".format', "user_exception"),
        ('    raise TimeoutError("no answer"', "unknown"),
    ],
)
def test_a_log_that_ends_within_a_traceback_is_about_its_frames(last: str, cause: str) -> None:
    said = ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', last]
    assert diagnose([[Line("a", number, text) for number, text in enumerate(said, 1)]]).root.cause == cause


def test_the_traceback_that_torchrun_shows_of_a_rank_is_the_ranks() -> None:
    log = """\
  exitcode  : 1 (pid: 17)
  error_file: /tmp/x/error.json
  traceback : Traceback (most recent call last):
    File "/v/site-packages/torch/distributed/elastic/multiprocessing/errors/__init__.py", line 347, in wrapper
      return f(*args, **kwargs)
    File "train.py", line 190, in main
      raise RuntimeError("x")
  RuntimeError: shapes differ from what I want

====="""
    found = read(log.split("\n"))
    assert found is not None
    assert found.root.evidence.cause == Cause.USER_EXCEPTION
    assert "shapes differ" in found.root.evidence.quote


def test_whose_code_met_an_error_of_the_system_stands_below_the_one_that_handled_it() -> None:
    log = """\
socket.gaierror: [Errno -3] Temporary failure in name resolution

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/v/site-packages/urllib3/connection.py", line 186, in _new_conn
    raise NewConnectionError(
StrangeError: nothing known"""
    found = read(log.split("\n"))
    assert found is not None
    assert found.root.evidence.cause == Cause.HUB_NETWORK


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (["OOM when allocating tensor with shape[2]", '  [[Node: a = B[_device="/task:0/cpu:0"](c)]]'], "host_oom"),
        (["OOM when allocating tensor with shape[2] on /device:CPU:0 by allocator cpu"], "host_oom"),
        (["OOM when allocating tensor", '  [[Node: a = B[recv_device="/task:0/cpu:0", _device="/gpu:0"]]]'], "gpu_oom"),
        (["RuntimeError: NCCL error in: x.cpp:1269, internal error, NCCL version 2.14.3"], "unknown"),
        (["ncclInternalError: Internal check failed.", "Net : Connection closed by remote peer a<43236>"], "peer_lost"),
        (["RuntimeError: Unexpected error from cudaGetDeviceCount()"], "cuda_driver"),
        (
            ["RuntimeError: Expected another device (when checking argument for argument a in method b)"],
            "user_exception",
        ),
        (
            ["OSError: Traceback (most recent call last):", '  File "/v/site-packages/PIL/a.py", line 1, in b', "E: c"],
            "data_corrupt",
        ),
        (["MisconfigurationException: You requested gpu: [1]", " But your machine only has: [0]"], "cuda_driver"),
        (
            ["libcudart.so was not found in any path", "CUDA SETUP: the runtime library was not detected"],
            "import_error",
        ),
        (["pyarrow.lib.ArrowNotImplementedError: nested data"], "user_exception"),
        (['Error from server (InternalError): failed calling webhook "a.b": Post "https://c:443"'], "unknown"),
        (['did not answer: failed calling webhook "a.b": Post "https://c:443": connection refused'], "unknown"),
        (["NCCL Error 1: unhandled cuda error"], "unknown"),
        (["Exception: either GCS or head node's raylet may not have started"], "rendezvous_connect"),
        (
            ["RuntimeError: Unable to meet other processes at the store, check if tensors are on the GPU"],
            "rendezvous_timeout",
        ),
        (["RuntimeError: looks like there is no internet connection"], "hub_network"),
        (["RuntimeError: Pin memory thread exited unexpectedly"], "dataloader_worker_killed"),
        (["OSError: Incorrect path_or_model_id: '/a'. Please provide a path"], "hub_network"),
        (["a@b: Permission denied (publickey).", "ORTE was unable to reliably start one or more"], "config_or_rbac"),
        (['Error from server (NotFound): pods "a" not found'], "config_or_rbac"),
    ],
)
def test_where_a_library_met_its_trouble(lines: list[str], cause: str) -> None:
    assert diagnose([[Line("a", number, text) for number, text in enumerate(lines, 1)]]).root.cause == cause


@pytest.mark.parametrize(
    ("code", "words", "cause"),
    [
        ("    optimizer.load_state_dict(saved['optimizer'])", "KeyError: 'optimizer'", "checkpoint_mismatch"),
        ("    step(batch['labels'])", "KeyError: 'labels'", "user_exception"),
    ],
)
def test_a_process_that_spawn_began_tells_of_its_own_error(code: str, words: str, cause: str) -> None:
    frames = [
        "-- Process 1 terminated with the following error:",
        "Traceback (most recent call last):",
        '  File "/v/site-packages/torch/multiprocessing/spawn.py", line 19, in _wrap',
        "    fn(i, *args)",
        '  File "train.py", line 101, in main_worker',
    ]
    found = read([*frames, code, words])
    assert found is not None
    assert found.root.evidence.cause == cause


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (_raised('  File "run.py", line 9, in x', "RuntimeError: train.py exited with non-zero status 1"), "unknown"),
        (['"OOMKilled": false,', '"ExitCode": 1,'], "unknown"),
        (_raised('  File "/v/site-packages/ray/a.py", line 25\n7, in get', "StrangeError: nothing"), "user_exception"),
        (
            ["warning: Could not load library libgomp.so.1", *_raised('  File "a.py", line 9, in x', "NameError: x")],
            "user_exception",
        ),
    ],
)
def test_what_is_reported_denied_or_done_without_ended_nothing(lines: list[str], cause: str) -> None:
    plain = "\n".join(lines).split("\n")
    found = diagnose([[Line("a", number, text) for number, text in enumerate(plain, 1)]])
    assert found.root.cause == cause
    assert found.root.line is None or not found.root.line.text.startswith("7, in")
