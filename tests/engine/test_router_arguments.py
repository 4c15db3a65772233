"""vllm-router's own parser reads what the chart writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import pods
from tests.engine.parser import INSIDE, Parser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Render

pytestmark = pytest.mark.engine

NIXL = "values/phase2-nccl.yaml"
MOONCAKE = "values/phase2-mooncake.yaml"
P2P = "values/phase2-nccl-legacy.yaml"
EVERYTHING = {
    "policies": {"prefill": "consistent_hash", "decode": "round_robin"},
    "retries": {"max": 0},
    "circuitBreaker": {"enabled": False},
    "args": {"max-concurrent-requests": 1000, "cors-allowed-origins": ["https://chat.example.com"]},
}


@pytest.fixture(scope="module")
def route(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parser]:
    """The router's parser."""
    log = tmp_path_factory.mktemp("router") / "log"
    with Parser([binaries / "python", INSIDE / "route.py"], log) as parser:
        yield parser


def argv(render: Render, file: str, **router: Any) -> list[str]:
    """What follows `vllm-router` in a rendering."""
    objects = render(file, values={"pdNccl": {"router": router}})
    name, *arguments = pods.words(pods.deployment(objects, "demo-router")["containers"][0])
    assert name == "vllm-router"
    return arguments


@pytest.mark.parametrize("router", [{}, EVERYTHING], ids=["defaults", "everything"])
@pytest.mark.parametrize("file", [NIXL, MOONCAKE, P2P])
def test_the_argv_of_every_connector_is_accepted(
    render: Render, route: Parser, file: str, router: Any
) -> None:
    result = route(argv(render, file, **router))
    assert result.error == ""
    assert result.values["vllm_pd_disaggregation"] is True


def test_selectors_arrive_whole(render: Render, route: Parser) -> None:
    values = route(argv(render, NIXL)).values
    labels = {"app.kubernetes.io/instance": "demo", "app.kubernetes.io/name": "vllm-pd-nccl"}
    for role in ("prefill", "decode"):
        assert values[f"{role}_selector"] == {**labels, "app.kubernetes.io/component": role}
    assert (values["service_discovery"], values["service_discovery_namespace"]) == (True, "default")


def test_each_connector_has_its_own_way_to_find_engines(render: Render, route: Parser) -> None:
    found = {file: route(argv(render, file)).values for file in (NIXL, MOONCAKE, P2P)}
    assert found[NIXL]["kv_connector"] == "nixl"
    assert found[MOONCAKE]["kv_connector"] == "mooncake"
    assert [found[file]["service_discovery"] for file in found] == [True, True, False]
    assert [found[file]["vllm_discovery_address"] for file in found] == [None, None, "0.0.0.0:30001"]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"retry-max-retry": 3}, "unrecognized arguments: --retry-max-retry=3"),
        ({"kv-connector": "lmcache"}, "argument --kv-connector: invalid choice: 'lmcache'"),
        ({"queue-size": "1e+06"}, "argument --queue-size: invalid int value: '1e+06'"),
    ],
    ids=["unknown flag", "unknown connector", "number in Go's spelling"],
)
def test_wrong_arguments_are_refused(render: Render, route: Parser, args: Any, error: str) -> None:
    assert route(argv(render, NIXL, args=args)).error.partition(" (choose from")[0] == error
