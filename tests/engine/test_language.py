# ruff: noqa: E501
"""The evaluators against independent ones: Python's own booleans, and tables of what Argo's libraries say."""

from __future__ import annotations

import contextlib
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.workflows.engine.depends import DEFAULT_RESULTS, holds, parse_depends, tasks_of
from argosy.workflows.engine.expression import patterns
from argosy.workflows.engine.expression.evaluate import evaluate, identifiers
from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import any_string, duration_seconds, fnv32a, json_text
from argosy.workflows.engine.loops import expand
from argosy.workflows.engine.reading import read_documents
from argosy.workflows.engine.substitute import Substitution
from argosy.workflows.engine.when import should_execute

RESULTS = ("Succeeded", "Failed", "Errored", "Skipped", "Omitted", "AnySucceeded", "AllFailed")
NAMES = ("a", "b-1", "c_x", "9z")
LEAVES = st.tuples(st.sampled_from(NAMES), st.sampled_from(("", *RESULTS)))
TREES = st.recursive(
    LEAVES,
    lambda below: st.one_of(st.tuples(st.just("!"), below), st.tuples(st.sampled_from(["&&", "||"]), below, below)),
    max_leaves=8,
)


def written(tree: Any) -> str:
    if tree[0] == "!":
        return f"!({written(tree[1])})"
    if tree[0] in ("&&", "||"):
        return f"({written(tree[1])} {tree[0]} {written(tree[2])})"
    return f"{tree[0]}.{tree[1]}" if tree[1] else str(tree[0])


def truth(tree: Any, results: dict[str, frozenset[str]]) -> bool:
    if tree[0] == "!":
        return not truth(tree[1], results)
    if tree[0] == "&&":
        return truth(tree[1], results) and truth(tree[2], results)
    if tree[0] == "||":
        return truth(tree[1], results) or truth(tree[2], results)
    return bool(results[tree[0]] & set([tree[1]] if tree[1] else DEFAULT_RESULTS))


@settings(max_examples=150)
@given(tree=TREES, found=st.fixed_dictionaries({name: st.frozensets(st.sampled_from(RESULTS)) for name in NAMES}))
def test_depends_is_boolean_logic(tree: Any, found: dict[str, frozenset[str]]) -> None:
    condition = parse_depends(written(tree))
    assert holds(condition, found) is truth(tree, found)
    assert set(tasks_of(condition)) == {name for name in NAMES if f"'{name}'" in str(tree)}


NUMBERS = st.integers(-1000, 1000)


@settings(max_examples=150)
@given(a=NUMBERS, b=NUMBERS, c=NUMBERS)
def test_arithmetic_and_comparison_follow_precedence(a: int, b: int, c: int) -> None:
    names = {"a": a, "b": b, "c": c}
    assert evaluate("a + b * c", names) == a + b * c
    assert evaluate("(a - b) - c == a - b - c && !(a > b) == (a <= b)", names) is True
    assert evaluate("a < b ? a : b", names) == min(a, b)
    assert evaluate("a in [b, c] or a not in [b, c]", names) is True
    assert should_execute(f"{abs(a)} < {abs(b)} || {abs(a)} >= {abs(b)}")
    assert should_execute(f"{abs(a)} in ({abs(b)}, {abs(c)})") is (abs(a) in (abs(b), abs(c)))


@settings(max_examples=100)
@given(text=st.text(max_size=30))
def test_any_text_survives_substitution_and_never_crashes_a_parser(text: str) -> None:
    try:
        assert Substitution({"x": text}).tree({"k": ["<{{x}}>"]}) == {"k": [f"<{text}>"]}
    except ExpressionError:
        assert any(unicodedata.category(each) == "Cc" or (each > "\uffff" and not each.isprintable()) for each in text)
    for parse in (lambda: should_execute(text), lambda: parse_depends(text), lambda: evaluate(text, {})):
        with contextlib.suppress(ExpressionError):
            parse()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 - 4 / 2", 5.0), ("'a' + \"b\" + `c`", "abc"), ("nil ?? 3", 3), ("m?.y?.z", None),
        ("m['a-b']", 1), ("m.missing == nil", True), ("[1, 2][1]", 2), ("{a: 1}.a", 1), ("len('abc')", 3),
        ("'abc' matches '^a.c$'", True), ("not (1 == 1.0)", False), ("string(3) == '3'", True), ("7 % 4", 3),
        ("nil ?? -3", -3), ("nil ?? -m.no ?? 3", -3), ("m.no ?? not true", False), ("1 + m.no ?? 2 + 3", 6),
        ("-m.no ?? 2 + 3", 1), ("(m.no ?? 1) == 1", True), ("m.no ?? true ? 1 + 2 : 2", 3), ("m.no contains 'a'", False),
        ("'a' matches m.no", False), ("'a' not matches m.no", True), ("m.no in m", False), ("m.no in {'': 1}", True),
        ("jsonpath('{\"a\": [1, {\"b\": 2}]}', '$.a[1].b')", 2), ("asFloat('1.5') * 2", 3.0), ("toJson({b: [1]})", '{"b":[1]}'),
    ],
)  # fmt: skip
def test_expressions(text: str, value: Any) -> None:
    assert evaluate(text, {"m": {"a-b": 1}}) == value


@pytest.mark.parametrize(
    "text",
    [
        "sprig.nope('x')",
        "nope(1)",
        "# + 1",
        "1 # 2",
        "upper({#})",
        "filter([1])",
        "filter(1, {#})",
        "filter([1], {#})",
        "1 +",
        "a.b.c",
        "1 < 'a'",
        "!1",
        "asInt('x')",
        "[1][5]",
    ],
)
def test_expression_errors(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, {"a": {}})


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("", True), ("a == a", True), ("'a b' != 'a b'", False), ("1.0 == 1", True), ("'1' == 1", False),
        ("true && !false", True), ("b in (a, b)", True), ("abc =~ '^a'", True), ("x == y ? true : false", False),
        ("6 & 3 == 2", True), ("8 | 6 & 3 == 2", True), ("1 | 2 ^ 3 == 0", True), ("1 + 1 << 1 == 4", True),
        ("-8 >> 1 == 9223372036854775804", True), ("1 << -1 == 0", True), ("~1 + 1 == -1", True), ("1.9 & 1.2 == 1", True),
        ("2 * 2 ** 3 == 16", True), ("2 ** 3 ** 2 == 64", True), ("1<<2>3", True),
    ],
)  # fmt: skip
def test_when(text: str, runs: bool) -> None:
    assert should_execute(text) is runs


@pytest.mark.parametrize(
    "text", ["my-value == x", "{{tasks.a.outputs.result}} == 1", "a ==", "1", "1.2.3 == 1", "a & 1 == 1"]
)
def test_when_errors(text: str) -> None:
    with pytest.raises(ExpressionError):
        should_execute(text)


def test_late_names_are_left_until_they_have_a_value() -> None:
    early = Substitution({"a": "1"})
    text = "{{=asInt(retries) + 1}} {{retries}} {{ a }} {{=workflow.status ?? 'none'}}"
    assert early.tree(text) == "{{=asInt(retries) + 1}} {{retries}} 1 {{=workflow.status ?? 'none'}}"
    assert Substitution({"a": "1", "retries": "2", "workflow.status": "x"}).tree(text) == "3 2 1 x"


def test_go_text() -> None:
    assert fnv32a("hello") == 0x4F9F2CAB
    assert [any_string(value) for value in (True, 1, 1.0, 0.1, 1e21, "x")] == [
        "true",
        "1",
        "1",
        "0.1",
        "1000000000000000000000",
        "x",
    ]
    assert json_text({"b": "<&>", "a": [1.0, None, True]}) == '{"a":[1,null,true],"b":"\\u003c\\u0026\\u003e"}'
    assert [duration_seconds(text) for text in ("90", "1m30s", "1.5h", "200ms")] == [90, 90, 5400, 0.2]
    with pytest.raises(ValueError, match="not a duration"):
        duration_seconds("soon")


def test_yaml_is_read_as_kubernetes_reads_it() -> None:
    text = b"date: 2020-01-01\ntime: 1:30\nyes: no\nocts: 010\nfloat: 1e3\nnil: ~\n"
    assert read_documents(text, "x") == [
        {"date": "2020-01-01", "time": "1:30", "true": False, "octs": 8, "float": 1000.0, "nil": None}
    ]


def test_loop_names() -> None:
    items = ["foo", 1, {"v": 1, "k": "alpha"}, ["a", 2], True, "a(b)"]
    names = [step["name"] for step in expand({"name": "x", "withItems": items}, {})]
    assert names == ["x(0:foo)", "x(1:1)", "x(2:k:alpha,v:1)", "x(3:[a 2])", "x(4:true)", "x(5:ab)"]


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ("'2026-01-02' == '2026-01-02 00:00'", True), ("'2026-01-02T10:00:00Z' == '2026-01-02T11:00:00+01:00'", True),
        ("'2026-01-02 09:00:00.7' > '2026-01-02 09:00:00'", False), ("'2026-01-02' == '2026-01-02T00:00:00'", False),
        ("'9:30AM' < '1:00PM'", True), ("'Fri Jan  2 10:00:00 2026' == '2026-01-02T10Z'", True),
        ("2026-01-02 == 2023", True), ("(6 & 3) == 2", True), ("(4 | 1 ^ 1) == 4", True), ("1 << 3 >= 8", True),
        ("~0 == -1", True), ("true || false", True),
    ],
)  # fmt: skip
def test_conditions_know_times_and_bits(when: str, holds: bool) -> None:
    assert should_execute(when) is holds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("filter([1, 2, 3], {# > 1})", [2, 3]),
        ("map([1, 2], # * 2 + #index)", [2, 5]),
        ("map([{a: 1}, {a: 2}], .a)", [1, 2]),
        ("map([[1, 2], [3]], {len(filter(#, {# > 1}))})", [1, 1]),
        ("[all([1, 2], # > 0), any([1], {# > 1}), none([1], # > 1), one([1, 1], # == 1), count([1, 2], {# > 1})]",
         [True, False, True, False, 1]),
        ("[find([1, 2], # > 1), find([], #), findIndex([1, 2], # > 1)]", [2, None, 1]),
        ("sprig.add(1, '2', 3.9, 'none') /* in all */ / 5 // 1.2", 1.2),
        ("sprig.b64dec(sprig.b64enc('ä')) + sprig.trim(' x ')", "äx"),
        ("[sprig.min(3, '2'), sprig.max(3, '0x10'), sprig.sub(1, 2), sprig.mul(2, 3), sprig.int('7')]",
         [2, 16, -1, 6, 7]),
    ],
)  # fmt: skip
def test_predicates_and_sprig(text: str, value: Any) -> None:
    assert evaluate(text, {}) == value


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a$", "a\n", False), ("(?m)a$", "a\nb", True), (r"^\w$", "é", False), (r"^\s$", "\v", False),
        ("[[:alpha:]]", "x", True), (r"x\z", "x", True), (r"\Qa.b\E", "axb", False), ("a{,2}", "aa", False),
        (r"(?i)\x{41}", "a", True), ("[a&&b]", "&", True), ("^*", "", True), ("(?<n>x)|y", "y", True),
    ],
)  # fmt: skip
def test_patterns_are_gos(pattern: str, text: str, found: bool) -> None:
    assert patterns.search(pattern, text) is found


@pytest.mark.parametrize("pattern", ["a(?=b)", r"(a)\1", "a++", "a**", r"\pL", r"\Z", "[]", "x{2000}", "[[:^digit:]]"])
def test_patterns_that_only_one_language_has_are_refused(pattern: str) -> None:
    with pytest.raises(ExpressionError, match="error parsing regexp"):
        patterns.search(pattern, "a")


@pytest.mark.parametrize(
    "text",
    [
        "t == 1", "t in [1]", "true || t", "'1' == 1", "[1] == 1", "t.x", "len(t) == '1'", "filter([1], # == 'a')",
        "nope ?? 1", "7.5 % 2", "upper(5)", "join([1], '')", "nil contains 'a'", "upper(m.none)", "asFloat(' 1')",
        "9223372036854775808", "'\\q'", "fromJSON('NaN')", "fromJSON('1e400')", "jsonpath('\"s\"', '$[0]')",
        "fromJSON('[7]')[0] % 2", f"fromJSON('{'[' * 100000}')", "split('abc')", "count([true])",
        "m.no ?? 1 == 1", "1 + m.no ?? 2 * 3", "[m.no ?? 'a' + 'b']", "m.no ?? -3 + 4", "m.no ?? true && true",
        "fromJSON('{}') in fromJSON('{}')", "fromJSON('1') in m", "m.no ?? 'a' not in ['a']",
    ],
)  # fmt: skip
def test_what_go_does_not_compile_or_evaluate_is_an_error(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, {"t": "1", "m": {}})


@pytest.mark.parametrize("text", ["!" * 5000 + "true", "m" + ".n" * 5000, "||".join(["false"] * 5000)])
def test_what_is_nested_too_deep_is_an_error(text: str) -> None:
    with pytest.raises(ExpressionError, match="nested too deep"):
        evaluate(text, {"m": {}})
    assert len(identifiers(text)) < 2000
    with pytest.raises(ExpressionError):
        should_execute(text.replace("!", "!(") + ")" * text.count("!"))


@pytest.mark.timeout(60)
def test_names_are_found_in_one_go_through_an_expression() -> None:
    assert identifiers("??".join(["a.b?.c"] * 10000)) == ["a"]


def test_json_may_have_pairs_of_escapes() -> None:
    assert read_documents(rb'{"a": "\ud83d\udd53", "b": "\\ud83d\\udd53"}', "x") == [
        {"a": "\U0001f553", "b": r"\ud83d\udd53"}
    ]
