"""Fixtures of the node tier.

pytest tests/node                    on a real node, made for the tests (Linux, root)
pytest tests/node --kubeconfig FILE  on any cluster; --cluster-values FILE says what its engines need
pytest tests/node --kind             on a cluster that kind makes of Docker containers
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .client import Client
from .report import cluster_report
from .site import Site, provider

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from .machine import Machine


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("the cluster of tests/node")
    group.addoption("--kubeconfig", type=Path, help="run the tests on this cluster")
    group.addoption("--kind", action="store_true", help="run the tests on a cluster that kind makes")
    group.addoption(
        "--cluster-values",
        type=Path,
        action="append",
        default=[],
        help="values that engines need on that cluster",
    )


@pytest.fixture(scope="session")
def progress(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Tell what happens while a test takes its minutes."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    terminal = pytestconfig.get_terminal_writer()

    def write(text: str) -> None:
        with capture.global_and_fixture_disabled():
            terminal.line(f"\n… {text}")

    return write


@pytest.fixture(scope="session")
def node(
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
    progress: Callable[[str], None],
) -> Iterator[Site]:
    """The cluster that the tests of this folder share."""
    with provider(pytestconfig)(tmp_path_factory.mktemp("node"), progress) as site:
        yield site


@pytest.fixture(scope="session")
def machine(node: Site) -> Machine:
    """The machine of the node, where it is one that the tests made."""
    if node.machine is None:
        pytest.skip("this cluster was not made by the tests")
    return node.machine


@pytest.fixture(scope="session")
def client(node: Site) -> Iterator[Client]:
    """A pod of a namespace in which nothing else runs."""
    with node.namespace() as namespace:
        yield Client.start(node, namespace)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show pods, events and logs below a test that failed."""
    report = yield
    site = getattr(item, "funcargs", {}).get("node")
    if report.failed and site is not None:
        report.sections.append(("the cluster", cluster_report(site.cluster)))
    return report
