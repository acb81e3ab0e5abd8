"""What is half said: a log that is cut, a class without its words, a report of another's end: nothing stops for it."""

from __future__ import annotations

import pytest

from argosy.steps.verdict.line import Line
from argosy.workflows.diagnosis.verdict import Named, diagnose

FRAMES = ("Traceback (most recent call last):", '  File "/app/train.py", line 210, in main', "    step(batch)")
CURL = "E tensorflow/core/platform/s3/aws_logging.cc:60] Curl returned error code 28"


def _root(*lines: str) -> Named:
    return diagnose([[Line("a", number, text) for number, text in enumerate(lines, 1)]]).root


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ((CURL, *FRAMES, "tf.app.ru"), "s3_throttle"),  # a name that the log's end cut through
        ((*FRAMES, "main(args)"), "unknown"),  # code that lost its margin
        ((*FRAMES, "Epoch 3 on another rank"), "unknown"),
        ((*FRAMES, "another rank's words", "queue.Empty"), "user_exception"),
        ((*FRAMES, "mine.errors.Odd: nothing that is known"), "user_exception"),
    ],
)
def test_what_follows_frames_is_an_exception_where_it_has_a_class(lines: tuple[str, ...], cause: str) -> None:
    assert _root(*lines).cause == cause


@pytest.mark.parametrize(
    ("heading", "cause"),
    [
        ("ray.exceptions.RayTaskError(AssertionError): ray::work() (pid=9)", "user_exception"),
        ("ray.exceptions.RayTaskError(RuntimeError): ray::work() (pid=9)", "unknown"),
        ("AttributeError                 Traceback (most recent call last)", "user_exception"),
        ("RuntimeError                   Traceback (most recent call last)", "unknown"),
    ],
)
def test_a_heading_names_what_the_log_ends_within(heading: str, cause: str) -> None:
    assert _root(heading, '  File "/app/train.py", line 3, in main', "    step(batch)").cause == cause


def test_a_store_that_is_asked_through_a_hubs_library_is_the_store() -> None:
    frames = (
        "TimeoutError: the read operation timed out",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "ReadTimeoutError                          Traceback (most recent call last)",
        "~/v/site-packages/botocore/httpsession.py in send(self, request)",
        "--> 263                 chunked=self._chunked(request.headers),",
        "~/v/site-packages/urllib3/util/retry.py in increment(self, method)",
    )
    assert _root(*frames).cause == "s3_throttle"


@pytest.mark.parametrize(
    "words",
    [
        "RuntimeError: 2 workers of this job have failed",
        "Exception: process 0 terminated with exit code 1",
        "mine.LaunchFailedError: the trial died",
    ],
)
def test_who_reports_that_another_ended_is_not_its_cause(words: str) -> None:
    assert _root(*FRAMES, words).cause == "unknown"


def test_words_of_a_gpus_memory_stop_nothing_for_it_may_be_the_hosts() -> None:
    found = _root("the allocator: ran out of memory, sorry")
    assert (found.cause, found.exit_code) == ("gpu_oom", 75)


@pytest.mark.parametrize(
    "line",
    [
        "INFO rank 0 attaching to shared memory segment psm_12ab",
        "UserWarning: [Errno 13] Permission denied.  joblib will operate in serial mode",
        "WARNING: Failed to import PIL.Image, cv2 is used",
        "argosy: 503 Slow Down: http://store:9000/b/k; it is asked again for 180 s",
    ],
)
def test_what_a_run_says_on_its_way_is_no_failure(line: str) -> None:
    assert _root(line, "Killed").cause == "unknown"


@pytest.mark.parametrize("scale", ["0", "0.0", "1e-05"])
def test_a_loss_scale_that_is_used_up_is_no_gradient_that_overflowed_on_the_way(scale: str) -> None:
    said = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to "
    assert _root(said + scale).cause == "numerics_nan"
    assert _root(said + "1024.0").cause == "unknown"


def test_the_second_guess_at_an_end_without_a_word_is_another() -> None:
    found = diagnose([[Line("a", 1, "Killed")]])
    assert found.runner_up is not None
    assert (found.root.cause, found.runner_up.cause) == ("unknown", "host_oom")
