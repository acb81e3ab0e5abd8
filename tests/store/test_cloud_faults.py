"""What S3 refuses, delays or answers wrongly becomes the right cause, and no write is taken for another's."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.store import ObjectMissing, StoreError, cloud, open_store
from argosy.steps.store.cloud import CloudStore
from argosy.steps.store.cloud_client import open_client
from argosy.steps.store.cloud_errors import store_error
from argosy.steps.store.creation import create_ours

BUCKET = "argosy-tests"


@pytest.fixture
def store(proxy: Any, impatient: Callable[[str], CloudStore]) -> CloudStore:
    return impatient(f"{BUCKET}/{uuid.uuid4().hex}")


def first(answer: str, method: str = "PUT") -> Callable[[str, str, int], str]:
    left = [answer]
    return lambda verb, path, number: left.pop() if left and verb == method else ""


def always(answer: str) -> Callable[[str, str, int], str]:
    return lambda method, path, number: answer


@pytest.mark.parametrize(
    "fault", ["before:503:SlowDown", "before:500:InternalError", "after:500:InternalError", "drop"]
)
def test_one_failure_is_repeated(store: CloudStore, proxy: Any, fault: str) -> None:
    proxy.fault = first(fault)
    store.put("k", b"data")
    proxy.fault = first(fault, "GET")
    assert store.get("k") == b"data"


def test_every_verb_asks_as_long_as_it_says(
    proxy: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The client's own ten tries are over after three seconds where connections are refused, and a training ended."""
    monkeypatch.setattr(cloud, "_PAUSE", 0.01)
    monkeypatch.setattr(cloud, "open_client", lambda uri, retry_seconds: open_client(uri, retry_seconds=0.0))
    store = CloudStore(f"s3://{BUCKET}/{uuid.uuid4().hex}", retry_seconds=30)
    verbs: list[tuple[str, Callable[[], Any], Any]] = [
        ("PUT", lambda: store.put("k", b"data"), None),
        ("PUT", lambda: store.upload("u", memoryview(b"data"))[1], 4),
        ("PUT", lambda: create_ours(store, "log/1", b"nonce"), True),
        ("GET", lambda: store.get("k"), b"data"),
        ("GET", lambda: store.get_range("k", 1, 2), b"at"),
        ("GET", lambda: store.fetch("k", tmp_path / "k"), hashlib.sha256(b"data").hexdigest()),
        ("GET", lambda: [info.key for info in store.list("log")], ["log/1"]),
        ("HEAD", lambda: store.head("k") is not None, True),
        ("DELETE", lambda: store.delete("k"), None),
    ]
    for number, (method, ask, answer) in enumerate(verbs):
        proxy.fault = first(("drop", "before:503:SlowDown")[number % 2], method)
        assert ask() == answer
    assert capsys.readouterr().err.count("it is asked again for 30 s") == 1


def test_what_no_store_said_is_not_asked_again(
    store: CloudStore, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A file that cannot be read, and a handler of signals, have words of their own, which may be a store's, too."""
    folder = tmp_path / "dns-connection-timeout"
    folder.mkdir()
    with pytest.raises(StoreError, match=r"cannot read .*: Is a directory"):
        store.upload("k", folder)
    assert store_error("write", "s3://b/k", TimeoutError("timed out")).cause is Cause.USER_EXCEPTION
    assert "asked again" not in capfd.readouterr().err


@pytest.mark.parametrize("fault", ["after:500:InternalError", "before:500:InternalError", "before:503:SlowDown"])
def test_a_lost_answer_to_our_own_create_is_ours(store: CloudStore, proxy: Any, fault: str) -> None:
    proxy.fault = first(fault)
    assert create_ours(store, "log/1", b"nonce-a")
    proxy.fault = first(fault)
    assert not create_ours(store, "log/1", b"nonce-b")
    assert store.get("log/1") == b"nonce-a"


def test_a_refusal_that_never_arrives_is_asked_for_otherwise(store: CloudStore, proxy: Any) -> None:
    """A server that refuses a large body before it has read it closes, at each try: a start took half a minute."""
    store.put("log/1", b"theirs")
    proxy.fault = lambda method, path, number: "drop" if method == "PUT" else ""
    assert not store.put_if_absent("log/1", b"ours")
    with pytest.raises(StoreError, match="did not serve"):
        store.put_if_absent("log/2", b"ours")


def test_what_a_handler_of_signals_raises_while_a_refusal_is_asked_for_is_the_scripts(
    store: CloudStore, proxy: Any
) -> None:
    def preempted(*_: object) -> None:
        raise InterruptedError("preempted")

    def answer(method: str, path: str, number: int) -> str:
        if method == "HEAD":
            os.kill(os.getpid(), signal.SIGUSR1)
        return "drop" if method == "PUT" else ""

    store.put("log/1", b"theirs")
    before, proxy.fault = signal.signal(signal.SIGUSR1, preempted), answer
    try:
        with pytest.raises(StoreError, match="interrupted by InterruptedError: preempted"):
            store.put_if_absent("log/1", b"ours")
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_conflict_is_tried_again_and_never_taken_for_an_object(store: CloudStore, proxy: Any) -> None:
    proxy.fault = first("before:409:ConditionalRequestConflict")
    assert store.put_if_absent("log/1", b"ours")
    assert store.get("log/1") == b"ours"


def test_a_conflict_without_end_is_an_error(store: CloudStore, proxy: Any) -> None:
    proxy.fault = lambda method, path, number: "before:409:ConditionalRequestConflict" if method == "PUT" else ""
    with pytest.raises(StoreError) as caught:
        store.put_if_absent("log/1", b"ours")
    assert caught.value.cause is Cause.STORE_UNAVAILABLE


@pytest.mark.parametrize(
    ("fault", "cause", "words"),
    [
        ("before:403:AccessDenied", Cause.S3_ACCESS, "403 AccessDenied"),
        ("before:403:SignatureDoesNotMatch", Cause.S3_ACCESS, "SignatureDoesNotMatch"),
        ("before:404:XAdminUserNotFound", Cause.S3_ACCESS, "404 XAdminUserNotFound"),
        ("before:400:ExpiredToken", Cause.CREDENTIALS_EXPIRED, "expired"),
        ("before:403:RequestTimeTooSkewed", Cause.S3_ACCESS, "the clock of this machine is not the store's"),
        ("before:503:SlowDown", Cause.S3_THROTTLE, "503 SlowDown"),
        ("before:500:InternalError", Cause.STORE_UNAVAILABLE, "500 InternalError"),
        ("before:507:InsufficientStorage", Cause.STORE_UNAVAILABLE, "the store is full (507 InsufficientStorage)"),
        ("before:403:QuotaExceeded", Cause.STORE_UNAVAILABLE, "the store is full (403 QuotaExceeded)"),
        ("drop", Cause.STORE_UNAVAILABLE, "did not serve"),
    ],
)
def test_causes(store: CloudStore, proxy: Any, tmp_path: Path, fault: str, cause: Cause, words: str) -> None:
    proxy.fault = always(fault)
    verbs: dict[str, Callable[[], object]] = {
        "read": lambda: store.get("some/key"),
        "write": lambda: store.put("some/key", b"x"),
        "create": lambda: store.put_if_absent("some/key", b"x"),
        "list": lambda: list(store.list("some")),
        "delete": lambda: store.delete("some/key"),
    }
    for verb, use in verbs.items():
        with pytest.raises(StoreError) as caught:
            use()
        assert caught.value.cause is cause, verb
        assert verb in str(caught.value)
        assert "some" in str(caught.value)
        assert words in str(caught.value), verb
        assert "\n" not in str(caught.value)
        assert fault.rpartition(":")[2] in caught.value.quote or fault == "drop"
        assert (caught.value.code == ExitCode.SUSPECT_NODE) is ("Skewed" in fault)
        assert not isinstance(caught.value, ObjectMissing)


def test_a_refused_head_is_not_an_absent_object(store: CloudStore, proxy: Any) -> None:
    proxy.fault = always("before:403:AccessDenied")
    with pytest.raises(StoreError) as caught:
        store.head("k")
    assert caught.value.cause is Cause.S3_ACCESS


def test_a_cut_body_never_passes(store: CloudStore, proxy: Any, tmp_path: Path) -> None:
    data = os.urandom(3 << 20)
    store.put("k", data)
    proxy.fault = lambda method, path, number: "cut" if method == "GET" else ""
    for read in (lambda: store.get("k"), lambda: store.fetch("k", tmp_path / "o")):
        with pytest.raises(StoreError) as caught:
            read()
        assert caught.value.cause is Cause.STORE_UNAVAILABLE
    proxy.fault = first("cut", "GET")
    assert store.get("k") == data


def test_a_missing_bucket_is_not_a_missing_object(proxy: Any, impatient: Callable[[str], CloudStore]) -> None:
    store = impatient("no-such-bucket-here/x")
    made = ", or make the bucket: aws s3 mb s3://no-such-bucket-here"
    uses = ((lambda: store.get("k"), made), (lambda: store.put("k", b""), made), (lambda: list(store.list("")), ""))
    for use, way in uses:
        with pytest.raises(StoreError, match=f"bucket does not exist .*correct the name{way}$") as caught:
            use()
        assert caught.value.cause is Cause.S3_MISSING
        assert not isinstance(caught.value, ObjectMissing)


def test_no_credentials_is_said_in_one_line(
    s3_environment: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store = open_store(f"s3://{BUCKET}/x")
    for use in (lambda: store.get("k"), lambda: list(store.list("")), lambda: list(store.scan())):
        with pytest.raises(StoreError, match=r"^no AWS credentials") as caught:
            use()
        assert caught.value.cause is Cause.S3_ACCESS


def test_while_nobody_answers_it_is_said_once_and_who_was_asked(
    store: CloudStore, proxy: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    store.put("k", b"data")
    proxy.fault = always("cut")
    for _ in range(2):
        with pytest.raises(StoreError, match=f"; it was asked at {proxy.endpoint}$"):
            list(store.list(""))
    assert re.fullmatch(r"argosy: cannot list s3://.*; it is asked again for 0 s\n", capsys.readouterr().err)


def test_a_profile_is_identity_too(s3_environment: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    config = tmp_path / "config"
    config.write_text("[profile lab]\nregion = us-east-1\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_PROFILE", "lab")
    store = open_store(f"s3://{BUCKET}/{uuid.uuid4().hex}")
    store.put("k", b"v")
    assert store.get("k") == b"v"


def test_folder_markers_are_not_objects(s3_environment: str) -> None:
    import boto3

    prefix = uuid.uuid4().hex
    client = boto3.client("s3", endpoint_url=s3_environment)
    for key in (f"{prefix}/", f"{prefix}/d/", f"{prefix}/d/x"):
        client.put_object(Bucket=BUCKET, Key=key, Body=b"" if key.endswith("/") else b"x")
    assert [info.key for info in open_store(f"s3://{BUCKET}/{prefix}").list("")] == ["d/x"]
    assert [info.key for info in open_store(f"s3://{BUCKET}/{prefix}").list("d")] == ["d/x"]
    client.put_object(Bucket=BUCKET, Key=f"{prefix}/d//y", Body=b"")
    with pytest.raises(StoreError, match="empty") as caught:
        list(open_store(f"s3://{BUCKET}/{prefix}").list(""))
    assert caught.value.cause is Cause.DATA_CORRUPT
    client.close()


def test_static_keys_need_no_boto3(s3_environment: str) -> None:
    code = (
        "import sys; from argosy.steps.store import open_store; s = open_store('s3://argosy-tests/t');"
        "s.put('k', b'1'); assert s.get('k') == b'1'; assert 'boto3' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


@pytest.mark.parametrize("uri", ["gs://bucket/prefix", "az://container/prefix"])
def test_other_clouds_open_and_refuse_in_our_words(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server of theirs runs here: what can be checked is that the client is made and errors are mapped."""
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "nobody")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "bm9ib2R5")
    store = open_store(uri)
    with pytest.raises(StoreError, match="segment"):
        store.get("a//b")


def test_what_happens_to_the_script_is_not_blamed_on_the_store() -> None:
    assert store_error("read", "s3://b/k", MemoryError()).cause is Cause.HOST_OOM
    told = store_error("read", "s3://b/k", RuntimeError("raised by a signal handler of the script"))
    assert told.cause is Cause.USER_EXCEPTION
    assert "RuntimeError: raised by a signal handler" in str(told)
