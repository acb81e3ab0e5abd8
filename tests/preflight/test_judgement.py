"""Who is blamed: the node that is at fault, always; and nobody where two could be."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.preflight.gathered import Gathered, dialled, neighbours, partners
from argosy.steps.preflight.judgement import Flaw, judge, second_look, summary
from argosy.steps.preflight.rank import MOST_DIALLED, ROUNDS


def judged(found: Gathered) -> list[Flaw]:
    """With a second look that saw the same."""
    best: dict[int, float] = {}
    for pair, speed in found.pairs.items():
        best |= {node: max(speed, best.get(node, 0.0)) for node in pair}
    again = {found.names[slow]: (best[slow], best[fast]) for (slow, fast), _ in second_look(found)}
    return judge(replace(found, again=again))


jitter = st.floats(0.75, 1.3)
gangs = st.integers(3, 40)


def gathered(
    nodes: int, draw: st.DrawFn, bad: frozenset[int] = frozenset(), dead: frozenset[int] = frozenset()
) -> Gathered:
    links = {tuple(sorted((a, b))) for a in range(nodes) for b in dialled(a, nodes, MOST_DIALLED)}
    met = {tuple(sorted((a, b))) for a in range(nodes) for b in partners(a, nodes, ROUNDS) if b is not None and a != b}
    pairs = {pair: draw(jitter) * (0.25 if bad & set(pair) else 1.0) for pair in sorted(met)}
    broken = {pair for pair in links if dead & set(pair)}
    names = [f"node-{number}" for number in range(nodes)]
    return Gathered(names=names, software=["torch 2"] * nodes, links=links, dead=broken, pairs={} if dead else pairs)  # type: ignore[arg-type]


@given(st.data(), gangs)
def test_one_slow_node_is_named_and_nobody_else(data: st.DataObject, nodes: int) -> None:
    slow = data.draw(st.integers(0, nodes - 1))
    flaws = judged(gathered(nodes, data.draw, bad=frozenset({slow})))
    assert [flaw.node for flaw in flaws] == [f"node-{slow}"]
    assert flaws[0].cause.exit_code == ExitCode.SUSPECT_NODE


@given(st.data(), st.integers(1, 40))
def test_jitter_is_no_flaw(data: st.DataObject, nodes: int) -> None:
    assert judged(gathered(nodes, data.draw)) == []


@given(st.data(), gangs)
def test_a_node_that_nobody_reaches_is_named(data: st.DataObject, nodes: int) -> None:
    lost = data.draw(st.integers(0, nodes - 1))
    flaws = judge(gathered(nodes, data.draw, dead=frozenset({lost})))
    assert [flaw.node for flaw in flaws] == [f"node-{lost}"]


def test_several_dead_nodes_are_named_and_halves_of_a_gang_are_not() -> None:
    names, links = [f"n{number}" for number in range(8)], set(combinations(range(8), 2))
    dead = {pair for pair in links if {1, 2} & set(pair)}
    found = Gathered(names=names, software=["x"] * 8, links=links, dead=dead)
    assert [flaw.node for flaw in judge(found)] == ["n1", "n2"]
    apart = {pair for pair in links if (pair[0] < 4) != (pair[1] < 4)}
    assert [flaw.node for flaw in judge(replace(found, dead=apart))] == [""]


def test_two_pods_of_a_dead_node_are_one_node() -> None:
    names, links = list("aabbccdd"), set(combinations(range(8), 2))
    dead = {pair for pair in links if len({6, 7} & set(pair)) == 1}
    assert [flaw.node for flaw in judge(Gathered(names=names, software=["x"] * 8, links=links, dead=dead))] == ["d"]


@given(st.data(), gangs)
def test_one_dead_link_blames_neither_end(data: st.DataObject, nodes: int) -> None:
    whole = gathered(nodes, data.draw)
    pair = data.draw(st.sampled_from(sorted(whole.links)))
    [flaw] = judge(Gathered(names=whole.names, software=whole.software, links=whole.links, dead={pair}))
    assert (flaw.node, flaw.cause.exit_code) == ("", ExitCode.TRANSIENT)
    assert all(f"node-{number}" in flaw.text for number in pair)


def test_two_nodes_can_only_be_compared_with_the_profile() -> None:
    found = Gathered(
        names=["a", "b"], software=["torch 2"] * 2, links={(0, 1)}, pairs={(0, 1): 0.1}, all_reduce=0.1, size=1 << 20
    )
    assert judge(found) == []
    [flaw] = judge(Gathered(**{**vars(found), "floor": 40.0}))
    assert flaw == Flaw(flaw.cause, "all_reduce of 1 MiB reaches 0.1 GB/s; the fabric's profile states 40 GB/s")
    assert flaw.cause.exit_code == ExitCode.CONFIGURATION
    assert summary(found) == (
        "1 of 1 links between 2 nodes work; two nodes exchange 0.1 GB/s each way; "
        "all_reduce of 1 MiB: 0.1 GB/s bus bandwidth"
    )


def test_a_rank_that_is_alone_is_said_to_be() -> None:
    assert "one rank" in summary(Gathered(names=["a"], software=["torch 2"], links=set()))


def test_a_second_look_clears_who_was_only_busy() -> None:
    pairs = {(0, 1): 1.0, (0, 2): 0.2, (1, 2): 0.2}
    found = Gathered(names=["a", "b", "c"], software=["x"] * 3, links=set(pairs), pairs=pairs)
    assert second_look(found) == [((2, 0), (1, 0))]
    assert [flaw.node for flaw in judge(replace(found, again={"c": (0.2, 0.9)}))] == ["c"]
    assert judge(replace(found, again={"c": (0.2, 0.3)})) == []


def test_pods_that_share_a_node_are_one() -> None:
    """What two of them exchange crosses no network: the node across a slow link must not look slow beside them."""
    pairs = {(0, 1): 0.58, (0, 2): 0.002, (1, 2): 0.002}
    assert judge(Gathered(names=["b", "b", "c"], software=["x"] * 3, links=set(pairs), pairs=pairs)) == []


def test_other_software_and_slow_gpus_are_named() -> None:
    names, links = ["a", "b", "c"], set(combinations(range(3), 2))
    flaws = judge(Gathered(names=names, software=["x", "y", "x"], links=links, compute=[1.0, 1.1, 1.9]))
    assert [flaw.text for flaw in flaws] == [
        "nodes differ: most have x; b has y",
        "c took 1.9 s for multiplications that take the median node 1.1 s",
    ]


@given(st.integers(1, 60), st.integers(1, 60))
def test_partners_meet_each_other_once(nodes: int, most: int) -> None:
    rounds = [partners(node, nodes, most) for node in range(nodes)]
    for node, met in enumerate(rounds):
        others = [other for other in met if other is not None]
        assert len(others) == len(set(others)) >= min(most, nodes - 1) - 1
        assert all(other is None or rounds[other][turn] == node != other for turn, other in enumerate(met))
    reached = {node: neighbours(node, nodes, most) for node in range(nodes)}
    assert all(node in reached[other] for node in reached for other in reached[node])
    pairs = [tuple(sorted((a, b))) for a in range(nodes) for b in dialled(a, nodes, 60)]
    assert sorted(pairs) == sorted(combinations(range(nodes), 2))
