"""Legal values give no error, fixes come to an end, and nothing that is said depends on the order."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.steps.nccl import catalogue
from argosy.steps.nccl.checks import RULES, check_environment
from argosy.steps.nccl.facts import Facts, Value
from argosy.steps.nccl.finding import Remove, Rename
from argosy.steps.nccl.gone import DEPRECATED, MISNAMED, REMOVED, TORCH_ALIASES

TABLE = {"NCCL_TIMEOUT", *REMOVED, *MISNAMED}
LEGAL = sorted(catalogue.names_read() - TABLE)
ANY_NAME = sorted({*LEGAL, *TABLE, *DEPRECATED, *TORCH_ALIASES, *catalogue.torch_names(), "NCCL_BUFFSZE", "NCCL_X_Y_Z"})
VALUES = st.one_of(
    st.none(), st.sampled_from(["0", "1", "4", "true", "SYS", "sys", "eth0", " 1", '"1"', ""]), st.text()
)
FACTS = st.builds(
    Facts,
    cloud=st.sampled_from([None, "aws", "gcp", "azure", "oci"]),
    gpu=st.sampled_from([None, "A100", "H100", "GB200"]),
    host_network=st.sampled_from([None, True, False]),
    nodes=st.sampled_from([None, 1, 2]),
    gpus_per_pod=st.sampled_from([None, 0, 1, 8]),
    resources=st.sampled_from([None, frozenset(), frozenset({"rdma/ib"}), frozenset({"vpc.amazonaws.com/efa"})]),
)


def legal_value(name: str) -> st.SearchStrategy[str]:
    setting = catalogue.settings().get(name)
    kind, _, rest = (setting.kind if setting else "text").partition(":")
    if kind == "bool":
        return st.sampled_from(["0", "1"])
    if kind == "int" and ".." in rest:
        low, high = rest.split("..")
        most = int(high) if high else 1 << 20
        return st.integers(int(low), most).map(str)
    if kind in ("one", "any", "each"):
        return st.sampled_from(rest.split("|"))
    return st.sampled_from(
        {"algorithms": ["Ring", "^nvls"], "protocols": ["Simple"], "float": ["1.5"]}.get(kind, ["7"])
    )


@st.composite
def one_legal_variable(draw: st.DrawFn) -> dict[str, Value]:
    name = draw(st.sampled_from(LEGAL))
    return {name: draw(legal_value(name))}


@given(one_legal_variable(), FACTS)
@settings(max_examples=400)
def test_a_legal_value_of_a_name_that_nccl_reads_is_no_error(env: dict[str, Value], facts: Facts) -> None:
    assert [each for each in check_environment(env, facts) if each.level == "error"] == []


@given(
    st.sets(st.sampled_from([name for name, each in catalogue.settings().items() if each.default is not None])), FACTS
)
@settings(max_examples=200)
def test_defaults_give_notes_only(names: set[str], facts: Facts) -> None:
    env: dict[str, Value] = {name: catalogue.settings()[name].default for name in names - {"NCCL_CHECK_POINTERS"}}
    assert [each for each in check_environment(env, facts) if each.level != "note"] == []


def mended(env: Mapping[str, Value], facts: Facts) -> dict[str, Value]:
    new = dict(env)
    for finding in check_environment(env, facts):
        match finding.fix:
            case Remove(name):
                new.pop(name, None)
            case Rename(name, other):
                assert other not in env
                if name in new:
                    new[other] = new.pop(name)
            case None:
                pass
            case fix:
                new[fix.variable] = fix.value
    return new


@given(st.dictionaries(st.sampled_from(ANY_NAME), VALUES, max_size=8), FACTS)
@settings(max_examples=400)
def test_fixes_come_to_an_end(env: dict[str, Value], facts: Facts) -> None:
    for _ in range(5):
        env, before = mended(env, facts), env
    assert env == before
    assert [each for each in check_environment(env, facts) if each.fix] == []


@given(st.dictionaries(st.sampled_from(ANY_NAME) | st.text(max_size=12), VALUES, max_size=8), FACTS)
@settings(max_examples=200)
def test_every_finding_has_a_rule_and_words_whatever_the_values(env: dict[str, Value], facts: Facts) -> None:
    found = check_environment(env, facts)
    backwards = check_environment(dict(reversed(env.items())), facts)
    assert found == backwards
    for each in found:
        assert each.rule in RULES
        assert each.message
        assert each.remedy
        assert not each.message.endswith(".")
