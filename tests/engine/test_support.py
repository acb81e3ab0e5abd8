"""Everything that would run otherwise than on a cluster is refused by name before anything starts."""

# ruff: noqa: E501  (YAML reads better in one line)

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.steps.contract.errors import InputError
from argosy.workflows.engine.api import RunOptions, check, ignored, run

MAIN = "- name: main\n  container: {image: i, command: ['true']}\n"

REFUSED = {
    "templates.main.synchronization.semaphores[0].configMapKeyRef: ConfigMap 'c' was not given": (
        "- {name: main, synchronization: {semaphores: [{configMapKeyRef: {name: c, key: k}}]}, container: {image: i, command: [x]}}"
    ),
    "semaphores[0].configMapKeyRef: a tag in a semaphore's name": (
        "- {name: main, synchronization: {semaphores: [{configMapKeyRef: {name: c, key: '{{workflow.name}}'}}]}, container: {image: i, command: [x]}}"
    ),
    "semaphores[0].configMapKeyRef: missing": "- {name: main, synchronization: {semaphores: [{}]}, container: {image: i, command: [x]}}",
    "templates.main.outputs.artifacts[0].path: '/etc' lies in /etc, which a pod shares": (
        "- {name: main, outputs: {artifacts: [{name: a, path: /etc}]}, container: {image: i, command: [x]}}"
    ),
    "synchronization.mutexes[1]: stands twice": (
        "- {name: main, synchronization: {mutexes: [{name: m}, {name: m}]}, container: {image: i, command: [x]}}"
    ),
    "spec.templates[0].daemon: not supported": "- {name: main, daemon: true, container: {image: i, command: [x]}}",
    "spec.templates[0].contaner: unknown field; did you mean container?": "- {name: main, contaner: {image: i}}",
    "spec.templates[0].container.comand: unknown field": "- {name: main, container: {image: i, comand: [x]}}",
    "templates.main.container.command: missing": "- {name: main, container: {image: i}}",
    "spec.templates[0].resource: not supported": "- {name: main, resource: {action: create}}",
    "spec.templates[0].http: not supported": "- {name: main, http: {url: x}}",
    "spec.templates[0].memoize: not supported": "- {name: main, memoize: {key: x}, container: {image: i, command: [x]}}",
    "spec.templates[0].sidecars: not supported": "- {name: main, sidecars: [{name: x}], container: {image: i, command: [x]}}",
    "spec.templates[0].inputs.artifacts[0].gcs: not supported": (
        "- {name: main, inputs: {artifacts: [{name: a, path: /tmp/a, gcs: {bucket: b, key: k}}]}, container: {image: i, command: [x]}}"
    ),
    "templates.main.suspend: without duration": "- {name: main, suspend: {}}",
    "templates.main.dag.tasks.a.template: no template is called 'nope'": "- {name: main, dag: {tasks: [{name: a, template: nope}]}}",
    "depends: no task is called 'zz'": "- {name: main, dag: {tasks: [{name: a, template: ok, depends: zz}]}}",
    "depends: 'a &&': unexpected end": "- {name: main, dag: {tasks: [{name: a, template: ok}, {name: b, template: ok, depends: 'a &&'}]}}",
    "depend on each other in a circle": (
        "- {name: main, dag: {tasks: [{name: a, template: ok, depends: b}, {name: b, template: ok, depends: a}]}}"
    ),
    "Daemoned: daemons are not supported": (
        "- {name: main, dag: {tasks: [{name: a, template: ok}, {name: b, template: ok, depends: a.Daemoned}]}}"
    ),
    "steps[0][0]: templates.exit.inputs.parameters.code: was not supplied": "- {name: main, steps: [[{name: a, template: exit}]]}",
    "stands twice; names are unique": "- {name: main, steps: [[{name: a, template: ok}], [{name: a, template: ok}]]}",
    "function sprig.nope: not supported": "- {name: main, container: {image: i, command: [x, \"{{=sprig.nope('x')}}\"]}}",
    "{{inputs.parameters.q}}: the template declares no such input": "- {name: main, container: {image: i, command: [x, '{{inputs.parameters.q}}']}}",
    "{{workflow.parameters.q}}: the workflow has nothing of this name": "- {name: main, container: {image: i, command: [x, '{{workflow.parameters.q}}']}}",
    "retryPolicy: 'Sometimes' is none of": "- {name: main, retryStrategy: {retryPolicy: Sometimes}, container: {image: i, command: [x]}}",
    "retryStrategy.expression: 'a ==': unexpected end": (
        "- {name: main, retryStrategy: {expression: 'a =='}, container: {image: i, command: [x]}}"
    ),
    "set ARGOSY_SECRET_S_K in the engine's environment": (
        "- {name: main, container: {image: i, command: [x], env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}}"
    ),
    "no volume is called 'v'": "- {name: main, container: {image: i, command: [x], volumeMounts: [{name: v, mountPath: /data}]}}",
    "claimName '../../x' is no Kubernetes name": (
        "- {name: main, volumes: [{name: v, persistentVolumeClaim: {claimName: ../../x}}], container: {image: i, command: [x]}}"
    ),
    "volume '../v': the name is no DNS label": (
        "- {name: main, volumes: [{name: ../v, emptyDir: {}}], container: {image: i, command: [x]}}"
    ),
    "subPath: '../../x' must be a relative path": (
        "- {name: main, volumes: [{name: v, emptyDir: {}}], container: {image: i, command: [x], "
        "volumeMounts: [{name: v, mountPath: /data, subPath: ../../x}]}}"
    ),
    "volume 'v': Secrets do not exist": (
        "- {name: main, volumes: [{name: v, secret: {secretName: s}}], container: {image: i, command: [x]}}"
    ),
    "templates.main.podSpecPatch.containers: 'env' is not built into": (
        "- {name: main, podSpecPatch: '{containers: [{name: main, env: []}]}', container: {image: i, command: [x]}}"
    ),
    "templates.main.podSpecPatch: 'hostPID' is not built into": (
        "- {name: main, podSpecPatch: '{hostPID: true}', container: {image: i, command: [x]}}"
    ),
    "templates.main.podSpecPatch: neither JSON nor YAML": (
        "- {name: main, podSpecPatch: 'a: [', container: {image: i, command: [x]}}"
    ),
    "lies in /etc, which a pod shares": (
        "- {name: main, inputs: {artifacts: [{name: a, path: /etc/a, raw: {data: x}}]}, container: {image: i, command: [x]}}"
    ),
    "spec.templates[0].name: True is not a text; put it in quotes": "- {name: y, container: {image: i, command: [x]}}",
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_refused_by_name(message: str, tmp_path: Path, make_workflow: Callable[..., bytes]) -> None:
    with pytest.raises(InputError) as caught:
        run(make_workflow(REFUSED[message]), RunOptions(state_dir=tmp_path / "state"))
    assert message in str(caught.value)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "exactly one Workflow is needed, found none"),
        (b"[1]", "a document is a list"),
        (b"a: [1", "not valid YAML"),
        (b"\xff", "not UTF-8"),
        (b"kind: Pod\napiVersion: v1\n", "apiVersion: 'v1'"),
        (b"kind: CronWorkflow\napiVersion: argoproj.io/v1alpha1\n", "kind: 'CronWorkflow'"),
        (b"kind: Workflow\napiVersion: argoproj.io/v1alpha1\n", "spec: missing"),
        (b"kind: Workflow\napiVersion: argoproj.io/v1alpha1\nspec: {}\n", "spec.entrypoint: missing"),
        (b"kind: Workflow\napiVersion: argoproj.io/v1alpha1\nspec: {a: 1, a: 2}\n", "stands twice in one map"),
        (
            b"kind: Workflow\napiVersion: argoproj.io/v1alpha1\nspec: {templates: {}}\n",
            "spec.templates: {} is not a list",
        ),
        (b"kind: Workflow\napiVersion: argoproj.io/v1alpha1\nspec: {templates: [null]}\n", "spec.templates[0]"),
        (b"kind: Workflow\napiVersion: argoproj.io/v1alpha1\nmetadata: 3\nspec: {}\n", "metadata"),
    ],
)
def test_malformed_documents(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        check(data, RunOptions(state_dir=tmp_path))
    assert message in str(caught.value)


def test_all_reasons_at_once(tmp_path: Path, make_workflow: Callable[..., bytes]) -> None:
    with pytest.raises(InputError) as caught:
        check(
            make_workflow("- {name: main, daemon: true, bogus: 1, http: {}, data: {a: 1}}"),
            RunOptions(state_dir=tmp_path),
        )
    assert "Argo 4.0.7 refuses this workflow (2 reasons):" in str(caught.value)
    assert "the local engine cannot run this workflow (2 reasons):" in str(caught.value)


def test_unknown_parameter_is_named(tmp_path: Path, make_workflow: Callable[..., bytes]) -> None:
    with pytest.raises(InputError, match="parameter 'q': the workflow has no such parameter; it has none"):
        check(make_workflow(MAIN), RunOptions(state_dir=tmp_path, parameters={"q": "1"}))


def test_what_is_ignored_is_listed_with_its_reason(tmp_path: Path, make_workflow: Callable[..., bytes]) -> None:
    text = make_workflow(
        MAIN.replace("image: i", "image: i, resources: {limits: {cpu: 1}}"), "entrypoint: main\npodGC: {}"
    )
    found = {each.path: each.reason for each in ignored(text, RunOptions(state_dir=tmp_path))}
    assert "spec.podGC" in found
    assert "share the machine" in found["spec.templates[0].container.resources"]


def test_template_refs_come_from_files(tmp_path: Path, make_workflow: Callable[..., bytes]) -> None:
    library = tmp_path / "library.yaml"
    library.write_text(
        textwrap.dedent(
            """
            apiVersion: argoproj.io/v1alpha1
            kind: WorkflowTemplate
            metadata: {name: library}
            spec:
              templates:
              - name: outer
                steps: [[{name: inner, template: inner}]]
              - name: inner
                container: {image: i, command: ["true"]}
            """
        )
    )
    text = make_workflow("- {name: main, steps: [[{name: a, templateRef: {name: library, template: outer}}]]}")
    with pytest.raises(InputError, match="WorkflowTemplate 'library' with template 'outer' was not given"):
        check(text, RunOptions(state_dir=tmp_path))
    state = run(text, RunOptions(state_dir=tmp_path, templates=(library,)))
    assert state.phase == "Succeeded"
    assert [node.name for node in state.nodes.values()][-1] == "wf[0].a[0].inner"


def test_a_workflow_template_can_be_run_by_reference_and_alone(tmp_path: Path) -> None:
    template = textwrap.dedent(
        """
        apiVersion: argoproj.io/v1alpha1
        kind: WorkflowTemplate
        metadata: {name: train}
        spec:
          entrypoint: main
          arguments: {parameters: [{name: a, value: "1"}, {name: b, value: "2"}]}
          templates:
          - name: main
            container: {image: i, command: [echo, "{{workflow.parameters.a}} {{workflow.parameters.b}}"]}
        """
    )
    alone = run(template.encode(), RunOptions(state_dir=tmp_path, parameters={"b": "3"}))
    assert alone.name.startswith("train-")
    assert Path(next(iter(alone.nodes.values())).log).read_text() == "1 3\n"
    reference = textwrap.dedent(
        """
        apiVersion: argoproj.io/v1alpha1
        kind: Workflow
        metadata: {generateName: by-reference-}
        spec:
          workflowTemplateRef: {name: train}
          arguments: {parameters: [{name: a, value: "9"}]}
        """
    )
    both = f"{reference}---{template}".encode()
    state = run(both, RunOptions(state_dir=tmp_path))
    assert Path(next(iter(state.nodes.values())).log).read_text() == "9 2\n"


@pytest.mark.parametrize("metadata", ["{name: ../../x}", "{name: A}", "{generateName: ../x-}", "{name: ''}"])
def test_a_name_that_no_cluster_takes_makes_no_folder(
    metadata: str, tmp_path: Path, make_workflow: Callable[..., bytes]
) -> None:
    text = make_workflow(MAIN).replace(b"{name: wf}", metadata.encode())
    with pytest.raises(InputError, match="is no Kubernetes name"):
        run(text, RunOptions(state_dir=tmp_path / "state"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (b"{name: wf}", b"{name: wf, labels: {who: wf-}}", "metadata.labels.who: 'wf-' is no label's value"),
        (b"{name: wf}", b"{name: wf, labels: {who/x/y: ''}}", "metadata.labels: 'who/x/y' is no label's key"),
        (b"{name: wf}", b"{name: wf, labels: {who: '" + b"w" * 64 + b"'}}", "is no label's value"),
        (
            b"- name: main",
            b"- metadata: {labels: {who: a b}}\n    name: main",
            "templates.main.metadata.labels.who: 'a b'",
        ),
    ],
)
def test_a_label_that_no_api_server_takes(
    old: bytes, new: bytes, told: str, tmp_path: Path, make_workflow: Callable[..., bytes]
) -> None:
    text = make_workflow(MAIN)
    assert old in text
    with pytest.raises(InputError, match=re.escape(told)):
        run(text.replace(old, new, 1), RunOptions(state_dir=tmp_path))


def test_only_the_templates_that_are_used_have_to_be_supported(tmp_path: Path) -> None:
    library = """
        apiVersion: argoproj.io/v1alpha1
        kind: WorkflowTemplate
        metadata: {name: %s}
        spec: {templates: [{name: t, %s}]}
        """
    call = "steps: [[{name: a, templateRef: {name: %s, template: t}}]]"
    parts = [("good", call % "deep"), ("deep", "container: {image: i, command: ['true']}"), ("bad", "http: {url: x}")]
    (tmp_path / "library.yaml").write_text("---".join(textwrap.dedent(library % each) for each in parts))
    options = RunOptions(state_dir=tmp_path, templates=(tmp_path / "library.yaml",))
    head = (
        "{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: wf}, spec: {entrypoint: main, templates: "
    )
    assert run(f"{head}[{{name: main, {call % 'good'}}}]}}}}".encode(), options).phase == "Succeeded"
    with pytest.raises(InputError, match=r"bad\.spec\.templates\[0\]\.http: not supported"):
        check(f"{head}[{{name: main, {call % 'bad'}}}]}}}}".encode(), options)
