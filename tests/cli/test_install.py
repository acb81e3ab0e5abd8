"""What ``argosy install`` prints, read as an administrator would."""

from __future__ import annotations

import pytest
import yaml

from argosy.workflows.compile import compile_run
from argosy.workflows.spec.run import TrainingRun

DANGEROUS = {("pods", "create"), ("pods", "delete"), ("pods/exec", "create"), ("secrets", "get"), ("secrets", "list")}


def test_it_renders_the_account_that_runs_use_and_its_rights(argosy) -> None:
    code, out, err = argosy("install", "-n", "research")
    assert (code, err) == (0, "")
    account, role, binding = yaml.safe_load_all(out)
    run = TrainingRun(name="r", script="t.py", code="")
    compiled = yaml.safe_load(compile_run(run))
    assert compiled["spec"]["serviceAccountName"] == account["metadata"]["name"] == "argosy"
    assert {each["metadata"]["namespace"] for each in (account, role, binding)} == {"research"}
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "argosy", "namespace": "research"}]
    granted = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert ("workflowtaskresults", "patch") in granted
    assert not granted & DANGEROUS
    assert not any("*" in pair for pair in granted)
    assert out.count("# ") == len(role["rules"])  # each with its reason


def test_namespace_volume_and_another_account_are_asked_for(argosy) -> None:
    _, out, _ = argosy("install", "-n", "a", "--service-account", "mine", "--create-namespace", "--claim", "5Gi")
    namespace, account, _, binding, claim = yaml.safe_load_all(out)
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    assert (account["metadata"]["name"], binding["metadata"]["name"]) == ("mine", "argosy-mine")
    assert claim["spec"] == {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "5Gi"}}}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--namespace: not given"),
        (("-n", "A_b"), "--namespace 'A_b': no Kubernetes name"),
        (("-n", "a", "--claim", "big"), "--claim 'big': no size"),
        (("-n", "a", "--storage-class", "nfs"), "--storage-class nfs: for which volume?"),
        (("-n", "a", "--apply", "--kubeconfig", "none"), "kubeconfig = 'none'"),
    ],
)
def test_what_is_wrong_is_said(arguments, said, argosy) -> None:
    code, out, err = argosy("install", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_the_script_of_an_evaluation_finds_no_api_token() -> None:
    evaluation = {"script": "e.py", "metric": "m", "direction": "min", "floor": 1.0}
    compiled = yaml.safe_load(compile_run(TrainingRun(name="r", script="t.py", code="", evaluation=evaluation)))
    by_name = {each["name"]: each for each in compiled["spec"]["templates"]}
    (mount,) = [m for m in by_name["evaluate"]["container"]["volumeMounts"] if "serviceaccount" in m["mountPath"]]
    assert {"name": mount["name"], "emptyDir": {}} in by_name["evaluate"]["volumes"]


def test_each_right_of_a_trigger_has_its_reason_too(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    source = '[trigger]\non = "marker"\n[trigger.event_source.sqs]\nqueue = "q"\nregion = "eu-west-1"\n'
    store = '[storage]\nuri = "s3://b/s"\n[dataset]\nuri = "s3://b/c"\n'
    (tmp_path / "run.toml").write_text(f'name = "r"\nscript = "train.py"\n{store}{source}')
    code, out, err = argosy("install", "-n", "a", "--trigger", str(tmp_path / "run.toml"))
    assert (code, err) == (0, "")
    roles = [each for each in yaml.safe_load_all(out) if each["kind"] == "Role"]
    assert [each["metadata"]["name"] for each in roles] == ["argosy", "argosy-trigger", "argosy-sensor"]
    assert out.count("\n# ") == sum(len(each["rules"]) for each in roles)


@pytest.mark.parametrize(
    ("verb", "said"),
    [("install", "always given"), ("ls", "else this machine"), ("watch", "else this machine"), ("doctor", "context's")],
)
def test_the_help_says_which_namespace_is_meant_without_one(verb, said, argosy) -> None:
    """It said everywhere that the context's is, where a verb refuses or means this machine."""
    _, out, _ = argosy(verb, "--help")
    words = " ".join(out.split())
    assert said in words.partition("--namespace TEXT")[2].partition("--context TEXT")[0]


@pytest.mark.parametrize("while_running", ["queue", "replace"])
def test_the_account_of_a_trigger_may_announce_at_argos_server_and_has_the_same_rights_for_every_run(
    while_running, argosy, tmp_path
) -> None:
    """Argo's server answered 403 to the token that the page names; a second run took the first one's ``patch``."""
    (tmp_path / "train.py").write_text("print(1)\n")
    store = '[storage]\nuri = "s3://b/s"\n[dataset]\nuri = "s3://b/c"\n'
    trigger = f'[trigger]\nwhile_running = "{while_running}"\n'
    (tmp_path / "run.toml").write_text(f'name = "r"\nscript = "train.py"\n{store}{trigger}')
    code, out, err = argosy("install", "-n", "a", "--trigger", str(tmp_path / "run.toml"))
    assert (code, err) == (0, "")
    found = [each for each in yaml.safe_load_all(out) if each["kind"] == "Role"]
    (role,) = [each for each in found if each["metadata"]["name"] == "argosy-trigger"]
    rights = {rule["resources"][0]: rule["verbs"] for rule in role["rules"]}
    assert rights["workflows"] == ["create", "list", "patch"]
    assert (rights["workfloweventbindings"], rights["workflowtemplates"]) == (["list"], ["get"])
