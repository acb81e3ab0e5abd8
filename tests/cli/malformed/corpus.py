"""Wrong inputs, as people and programs make them: the command line, the files, and what the message must name."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

RUN = 'name = "r"\nscript = "train.py"\ncode = ""\n'
OWN_CODE = 'name = "r"\nscript = "train.py"\n'
GANG = RUN + "[gang]\n"


@dataclass(frozen=True)
class Case:
    """``argv`` in a folder with ``files``; the one line of the answer holds every text of ``names``."""

    id: str
    argv: tuple[str, ...]
    names: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)


def toml(name: str, text: str | bytes, *names: str, verb: str = "compile") -> Case:
    data = text.encode() if isinstance(text, str) else text
    return Case(f"toml-{name}", (verb, "run.toml"), ("run.toml", *names), {"run.toml": data})


def workflow(name: str, text: str | bytes, *names: str) -> Case:
    data = text.encode() if isinstance(text, str) else text
    return Case(f"yaml-{name}", ("run", "w.yaml"), names, {"w.yaml": data})


def spec(name: str, text: str, *names: str) -> Case:
    head = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: x-}\n"
    return workflow(name, head + text, *names)


DATASET_RUN = RUN + '[dataset]\nuri = "s3://bucket/corpus"\n'


def event(name: str, data: object, *names: str) -> Case:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    files = {"run.toml": DATASET_RUN.encode(), "event.json": raw}
    return Case(f"event-{name}", ("run", "run.toml", "--event", "event.json"), ("event.json", *names), files)


def flags(name: str, argv: str, *names: str, run: str = RUN) -> Case:
    return Case(f"flag-{name}", tuple(argv.split()), names, {"run.toml": run.encode(), "train.py": SCRIPT})


SCRIPT = b'import torch\ntorch.save({}, "out/ckpt.pt")\n'


def record(**change: object) -> dict[str, object]:
    """An S3 record with some of its parts changed."""
    bucket = {"name": "bucket"}
    item = {"key": "corpus/_SUCCESS", "eTag": "abc", "size": 1}
    found: dict[str, object] = {"eventName": "ObjectCreated:Put", "s3": {"bucket": bucket, "object": item}}
    return {"Records": [{**found, **change}]}


YAML = [
    workflow("empty", "", "w.yaml", "Workflow"),
    workflow("text", "hello", "w.yaml"),
    workflow("list", "- 1\n- 2\n", "w.yaml"),
    workflow("number", "3", "w.yaml"),
    workflow("tabs", "a:\n\t- b\n", "w.yaml", "line"),
    workflow("unclosed", "a: [1, 2\nb: {", "w.yaml", "line"),
    workflow("binary", bytes(range(256)), "w.yaml"),
    workflow("invalid-utf8", b"kind: \xff\xfe Workflow", "w.yaml", "UTF-8"),
    workflow("two-keys", "kind: Workflow\nkind: Workflow\n", "kind"),
    workflow("other-kind", "apiVersion: v1\nkind: Pod\n", "Pod"),
    workflow("kind-number", "kind: 5\n", "w.yaml"),
    workflow("python-object", "!!python/object/apply:os.system ['true']", "w.yaml"),
    workflow("unknown-anchor", "a: *nowhere\n", "w.yaml", "line"),
    workflow("deep", "a: " + "[" * 4000 + "]" * 4000, "w.yaml"),
    workflow("deep-indent", "".join(" " * depth + "a:\n" for depth in range(1500)), "w.yaml"),
    workflow(
        "bomb",
        "kind: Workflow\na: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
        + "spec: {entrypoint: *i}\n",
        "w.yaml",
    ),
    workflow("cycle", "kind: Workflow\nspec: &s {templates: [*s]}\n", "w.yaml"),
    spec("no-spec", "", "spec"),
    spec("spec-list", "spec: []\n", "spec"),
    spec("no-entrypoint", "spec: {templates: [{name: a, container: {image: i, command: [x]}}]}\n", "entrypoint"),
    spec(
        "unknown-entrypoint",
        "spec: {entrypoint: b, templates: [{name: a, container: {image: i, command: [x]}}]}\n",
        "b",
    ),
    spec("no-templates", "spec: {entrypoint: a}\n", "a"),
    spec("templates-text", "spec: {entrypoint: a, templates: hello}\n", "templates"),
    spec("no-command", "spec: {entrypoint: a, templates: [{name: a, container: {image: i}}]}\n", "command"),
    spec(
        "unknown-field",
        "spec: {entrypoint: a, templates: [{name: a, conatiner: {image: i, command: [x]}}]}\n",
        "conatiner",
    ),
    spec(
        "unknown-task",
        "spec: {entrypoint: a, templates: [{name: a, dag: {tasks: [{name: t, template: nowhere}]}}]}\n",
        "nowhere",
    ),
    spec(
        "unknown-dependency",
        "spec: {entrypoint: a, templates: [{name: a, dag: {tasks: [{name: t, template: c, depends: u}]}},"
        " {name: c, container: {image: i, command: [x]}}]}\n",
        "u",
    ),
    spec("template-ref", "spec: {workflowTemplateRef: {name: nowhere}}\n", "nowhere"),
]

EVENTS = [
    event("empty", b"", "JSON"),
    event("no-json", b"{", "JSON"),
    event("binary", bytes(range(256)), "JSON"),
    event("number", 5),
    event("null", None),
    event("text", "hello"),
    event("empty-list", []),
    event("empty-object", {}),
    event("other-object", {"hello": 1}),
    event("records-number", {"Records": 5}),
    event("record-null", {"Records": [None]}),
    event("no-bucket", record(s3={"object": {"key": "corpus/x"}}), "bucket"),
    event("bucket-number", record(s3={"bucket": {"name": 5}, "object": {"key": "corpus/x"}}), "bucket.name"),
    event("bucket-slash", record(s3={"bucket": {"name": "a/b"}, "object": {"key": "corpus/x"}}), "bucket.name"),
    event("no-key", record(s3={"bucket": {"name": "bucket"}, "object": {}}), "object.key"),
    event("key-escape", record(s3={"bucket": {"name": "bucket"}, "object": {"key": "corpus/%zz"}}), "object.key"),
    event("key-utf8", record(s3={"bucket": {"name": "bucket"}, "object": {"key": "corpus/%ff"}}), "object.key"),
    event("key-parent", record(s3={"bucket": {"name": "bucket"}, "object": {"key": "corpus/../x"}}), "object.key"),
    event("key-nul", record(s3={"bucket": {"name": "bucket"}, "object": {"key": "corpus/%00"}}), "object.key"),
    event("s3-list", record(s3=[]), "s3"),
    event("name-number", record(eventName=5), "eventName"),
    event("deep", b"[" * 100_000 + b"]" * 100_000),
    event("nested", {"Message": json.dumps({"Message": json.dumps({"Message": json.dumps({"Message": "{}"})})})}),
    event("huge", b'{"Records": "' + b"x" * (2 << 20) + b'"}', "bytes"),
    Case(
        "event-missing",
        ("run", "run.toml", "--event", "nowhere.json"),
        ("nowhere.json",),
        {"run.toml": DATASET_RUN.encode()},
    ),
    Case("event-folder", ("run", "run.toml", "--event", "."), ("folder",), {"run.toml": DATASET_RUN.encode()}),
    Case(
        "event-no-dataset",
        ("run", "run.toml", "--event", "event.json"),
        ("event.json", "dataset"),
        {"run.toml": RUN.encode(), "event.json": json.dumps(record()).encode()},
    ),
]

FLAGS = [
    flags("unknown-verb", "launch run.toml", "launch"),
    flags("near-verb", "complie run.toml", "compile"),
    flags("unknown-flag", "run run.toml --fast", "--fast"),
    flags("global-flag", "--fast run run.toml", "--fast"),
    flags("no-file", "run", "FILE"),
    flags("no-file-compile", "compile", "RUN.toml"),
    flags("missing-file", "run nowhere.toml", "nowhere.toml"),
    flags("missing-yaml", "run nowhere.yaml", "nowhere.yaml"),
    flags("folder", "run .", "folder"),
    flags("folder-toml", "compile .", "folder"),
    flags("no-suffix", "run train.py", "train.py"),
    flags("compile-yaml", "compile w.yaml", "w.yaml"),
    flags("too-many", "compile run.toml run.toml", "run.toml"),
    flags("ranks", "run run.toml -j 2", "-j"),
    flags("ranks-zero", "run run.toml -j 0x2", "-j"),
    flags("ranks-text", "run run.toml -j axb", "-j"),
    flags("ranks-negative", "run run.toml -j -2x2", "-j"),
    flags("ranks-huge", "run run.toml -j 999999x999999", "-j"),
    flags("ranks-unicode", "run run.toml -j ²x2", "-j"),
    flags("parameter", "run run.toml -p resume", "-p"),
    flags("parameter-unknown", "run run.toml -p speed=3", "speed"),
    flags("parameter-twice", "run run.toml -p resume-from=none -p resume-from=none", "resume-from"),
    flags("parameter-and-flag", "run run.toml --run-id a -p run-id=b", "run-id"),
    flags("args", "run run.toml -p args=3", "args"),
    flags("args-objects", "run run.toml -p args=[1]", "args"),
    flags("force", "run run.toml -p force=yes", "force"),
    flags("resume-from", "run run.toml --resume-from yesterday", "resume-from"),
    flags("run-id", "run run.toml --run-id a/b", "run-id"),
    flags("run-id-dots", "run run.toml --run-id ..", "run-id"),
    flags("run-id-long", f"run run.toml --run-id {'x' * 64}", "run-id"),
    flags("inject", "run run.toml --inject boom", "inject"),
    flags("inject-fault", "run run.toml --inject melt:rank=1@step=4", "melt"),
    flags("inject-step", "run run.toml --inject kill:rank=1@step=0", "step"),
    flags("inject-no-rank", "run run.toml --inject kill@step=4", "rank"),
    flags("inject-code", "run run.toml --inject exit:rank=0,code=999@step=4", "code"),
    flags("inject-exit-mute", "run run.toml --inject exit:rank=0,code=3@step=4", "argosy.report", "kill", run=OWN_CODE),
    flags("chaos-exit-mute", "chaos run.toml --kind exit", "argosy.report", "kill", run=OWN_CODE),
    flags("templates", "run run.toml --templates nowhere.yaml", "nowhere.yaml"),
    flags("gpu", "run run.toml", "gang.resources.gpu", "-j 2x1", "argo submit", run=GANG + "resources = {gpu = 1}\n"),
    flags("output-folder", "compile run.toml -o nowhere/w.yaml", "nowhere/w.yaml"),
    flags("output-is-folder", "compile run.toml -o .", "--output"),
    flags("output-too-long", f"compile run.toml -o {'w' * 300}", "too long"),
    flags("state-dir", "status --state-dir run.toml", "--state-dir"),
    flags("no-run", "status", "argosy run"),
    flags("no-run-logs", "logs", "argosy run"),
    flags("no-run-explain", "explain x", "argosy run"),
    flags("no-run-report", "report", "argosy run"),
    flags("config-field", "explain-config gang.nodes", "gang.nodes"),
    flags("config-deep", "explain-config name.first", "name"),
    flags("logs-rank", "logs --rank -1", "--rank"),
    flags("logs-tail", "logs --tail x", "--tail"),
    flags("init-missing", "init nowhere.py", "nowhere.py"),
    flags("init-folder", "init .", "SCRIPT"),
    flags("init-name", "init train.py -o o.toml --name No_Name", "--name"),
    flags("init-opaque", "init train.py -o o.toml --opaque /out", "--opaque"),
    flags("init-opaque-parent", "init train.py -o o.toml --opaque ../out", "--opaque"),
    flags("init-exists", "init train.py", "run.toml", "--force"),
    flags("init-output-folder", "init train.py -o nowhere/run.toml", "--output"),
    flags("init-output-too-long", f"init train.py -o {'w' * 300}", "too long"),
    flags("script-too-long", f"init {'w' * 300}.py", "too long"),
    flags("state-dir-too-long", f"ls --state-dir {'w' * 300}", "too long"),
    flags("lint-too-long", f"lint {'w' * 300}.yaml", "too long"),
    flags("import-too-long", f"import {'w' * 300}.yaml", "too long"),
    flags("logs-too-long", f"diagnose {'w' * 300}", "too long"),
    flags("init-flag", "init train.py --steps 3", "--steps"),
]

SCRIPTS = [
    Case("init-no-python", ("init", "t.py"), ("t.py:1",), {"t.py": b"def (:\n"}),
    Case("init-binary", ("init", "t.py"), ("t.py",), {"t.py": bytes(range(256))}),
    Case("init-nul", ("init", "t.py"), ("t.py",), {"t.py": b"a = 1\0\n"}),
    Case("init-deep", ("init", "t.py"), ("t.py",), {"t.py": b"a = " + b"(" * 5000 + b")" * 5000}),
    Case("init-no-checkpoint", ("init", "t.py"), ("--opaque",), {"t.py": b"print(1)\n"}),
    Case(
        "init-unclear", ("init", "t.py"), ("line 2", "--opaque"), {"t.py": b"import torch\ntorch.save({}, where())\n"}
    ),
    Case(
        "init-absolute",
        ("init", "t.py"),
        ("line 2: /ckpt", "'out'"),
        {"t.py": b"import torch\ntorch.save({}, '/ckpt/a.pt')\n"},
    ),
]

STATE = [
    Case("state-no-json", ("status",), ("state.json",), {".argosy/runs/w/state.json": b"{"}),
    Case("state-list", ("status",), ("state.json",), {".argosy/runs/w/state.json": b"[]"}),
    Case("state-binary", ("explain",), ("state.json",), {".argosy/runs/w/state.json": bytes(range(256))}),
    Case(
        "state-uri",
        ("status",),
        ("ftp",),
        {
            ".argosy/runs/w/state.json": b'{"name":"w","annotations":{"argosy.dev/store-uri":"ftp://x","argosy.dev/run-name":"r"}}'
        },
    ),
    Case("state-unknown-run", ("status", "nope"), ("nope", "known"), {".argosy/runs/w/state.json": b'{"name":"w"}'}),
    Case(
        "report-output", ("report", "-o", "no/r.html"), ("no/r.html",), {".argosy/runs/w/state.json": b'{"name":"w"}'}
    ),
    Case("logs-follow-json", ("logs", "-f", "--json"), ("--json",), {".argosy/runs/w/state.json": b'{"name":"w"}'}),
]

CODE = [
    toml("run-typo", RUN + "gnag = 1\n", "gnag", verb="run"),
    Case(
        "toml-code-missing",
        ("compile", "run.toml"),
        ("nowhere",),
        {"run.toml": RUN.replace('""', '"nowhere"').encode()},
    ),
    Case(
        "toml-code-is-file",
        ("compile", "run.toml"),
        ("run.toml",),
        {"run.toml": RUN.replace('""', '"run.toml"').encode()},
    ),
]


def further(found: Any) -> list[Case]:
    """The cases of ``corpus_further``."""
    script = {"train.py": SCRIPT}
    return [
        *(toml(*case) for case in found.TOML),
        *(flags(name, argv, *names) for name, argv, names in found.FLAGS),
        *(Case(name, argv, names, {"run.toml": text, **script}) for name, argv, names, text in found.NOT_PRESENT),
    ]


CASES = [*CODE, *YAML, *EVENTS, *FLAGS, *SCRIPTS, *STATE]
