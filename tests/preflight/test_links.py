"""A slow cable and a cut one between real ranks: `make prove SUITE=preflight` has more of them."""

from __future__ import annotations

import os

import pytest

from tests.preflight.links import Network

pytestmark = [
    pytest.mark.torch,
    pytest.mark.variant,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


def test_a_slow_cable_and_a_cut_one_are_named() -> None:
    network = Network(3, "aypf")
    with network.up():
        network.slow(1, "30mbit")
        said = network.preflight()
        assert "3 of 3 links between 3 nodes work" in said[0]
        assert "warning: preflight: node-1 exchanges at most 0.00" in said[1]
        assert len(said) == 2
        network.cut(1, 2)
        said = network.preflight()
        assert "2 of 3 links between 3 nodes work" in said[0]
        assert "these do not reach each other: node-1 and node-2" in said[1]
