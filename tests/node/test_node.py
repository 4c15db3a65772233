"""What the other tests of this folder take for granted of their cluster."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.cluster.release import eventually

from .client import Client, sleeping_pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .machine import Machine
    from .site import Site

pytestmark = pytest.mark.node

SERVER = ("python3", "-m", "http.server", "8080", "--directory", "/usr/share")
REFUSED = "TimeoutError timed out"  # enforcement drops, it does not answer
ONLY_FRIENDS = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "server"},
    "spec": {
        "podSelector": {"matchLabels": {"app": "server"}},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "friend"}}}]}],
    },
}


@pytest.fixture(scope="module")
def namespace(node: Site) -> Iterator[str]:
    """A namespace with a pod `server` behind a Service of that name."""
    with node.namespace() as name:
        spec = {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server"}, "spec": spec}
        node.cluster.apply(sleeping_pod("server", node.image, *SERVER), service, namespace=name)
        node.cluster.kubectl("wait", "--for=condition=Ready", "pod/server", "-n", name, "--timeout=5m")
        yield name


@pytest.fixture(scope="module")
def friend(node: Site, namespace: str) -> Client:
    """A pod beside the server."""
    return Client.start(node, namespace, "friend")


@pytest.fixture(scope="module")
def stranger(node: Site, namespace: str) -> Client:
    """Another pod beside the server."""
    return Client.start(node, namespace, "stranger")


def test_every_node_is_ready(node: Site) -> None:
    nodes = node.cluster.get("nodes")
    ready = [
        [each["status"] for each in one["status"]["conditions"] if each["type"] == "Ready"] for one in nodes
    ]
    assert ready == [["True"]] * len(nodes)


def test_a_restricted_pod_runs_as_its_user_without_capabilities(friend: Client) -> None:
    status = friend.python("print(open('/proc/self/status').read())")
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert fields["Uid"].split() == ["1000"] * 4
    assert {name: fields[name] for name in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")} == {
        "CapEff": "0" * 16,
        "CapBnd": "0" * 16,
        "NoNewPrivs": "1",
        "Seccomp": "2",
    }


def test_a_service_answers_by_its_address_and_by_its_name(node: Site, namespace: str, friend: Client) -> None:
    address = node.cluster.get("service", "server", "-n", namespace)["spec"]["clusterIP"]
    for host in (address, "server", f"server.{namespace}.svc.cluster.local"):
        assert friend.connect(host, 80) == "connected"


def test_a_service_answers_in_another_namespace(client: Client, namespace: str) -> None:
    assert client.connect(f"server.{namespace}", 80) == "connected"


def test_a_network_policy_lets_in_whom_it_names_and_nobody_else(
    node: Site, namespace: str, friend: Client, stranger: Client, client: Client
) -> None:
    address = node.cluster.get("pod", "server", "-n", namespace)["status"]["podIP"]
    assert stranger.connect(address, 8080) == "connected"
    node.cluster.apply(ONLY_FRIENDS, namespace=namespace)
    try:
        eventually(partial(stranger.connect, address, 8080), REFUSED)
        assert client.connect(address, 8080) == REFUSED
        assert client.connect(f"server.{namespace}", 80) == REFUSED
        assert friend.connect(address, 8080) == "connected"
        assert friend.connect("server", 80) == "connected"
    finally:
        node.cluster.kubectl("delete", "networkpolicy", "server", "-n", namespace)


def test_the_node_offers_eight_gpus(node: Site, machine: Machine) -> None:
    (only,) = node.cluster.get("nodes")
    assert only["status"]["allocatable"]["nvidia.com/gpu"] == "8"


def test_nothing_leads_out_of_the_machine(machine: Machine, client: Client) -> None:
    links = json.loads(machine.run("ip", "-json", "-details", "link"))
    assert {link.get("linkinfo", {}).get("info_kind", link["ifname"]) for link in links} == {"lo", "veth"}
    routes = json.loads(machine.run("ip", "-json", "route"))
    assert {route["dev"] for route in routes} <= {link["ifname"] for link in links}
    assert "default" not in {route["dst"] for route in routes}
    documentation = "192.0.2.1"  # an address that nobody has
    assert client.connect(documentation, 80) == "OSError [Errno 101] Network is unreachable"
