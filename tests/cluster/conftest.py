"""One cluster for the whole session: the instance that runs already, else one that is started and ended here.

Each worker of pytest-xdist has an instance of its own: a cluster mostly waits, so two take little longer than one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import runtimes
from tests.cluster.client import Client
from tests.cluster.cluster import Cluster, why_not
from tests.cluster.instance import Instance

HERE = Path(__file__).parent
SECONDS = 900
"""Of the first test: it contains the start of the cluster."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SECONDS))


def _instance() -> Instance:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return Instance(Instance.from_environment().number + int(worker))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The cluster of this machine, with its power switches."""
    if reason := why_not():
        pytest.skip(f"no cluster: {reason}")
    made = Cluster(_instance())
    with made.lent():
        yield made


@pytest.fixture(scope="session")
def client(request: pytest.FixtureRequest) -> Client:
    """Any cluster: the one that ARGOSY_KUBECONFIG names, else this machine's."""
    if given := os.environ.get("ARGOSY_KUBECONFIG"):
        return Client(Path(given))
    found: Cluster = request.getfixturevalue("cluster")
    return found


@pytest.fixture(scope="session")
def operators(cluster: Cluster) -> Iterator[set[str]]:
    """Who makes the pods of the further runtimes, beside it: those that run, by name."""
    with runtimes.operators(cluster) as running:
        yield running


@pytest.fixture
def namespace(client: Client) -> Iterator[str]:
    """A namespace of the test's own, enforcing Pod Security *restricted*."""
    with client.namespace("test") as name:
        yield name
