"""vLLM's own parser reads what the charts write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import pods

if TYPE_CHECKING:
    from tests.conftest import Objects, Render
    from tests.engine.parser import Parser

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[2]
Case = tuple[str, ...]
"""Values files of one release, from the root of the repository."""


def files(pattern: str) -> list[str]:
    return sorted(str(file.relative_to(ROOT)) for file in ROOT.glob(pattern))


PHASES: list[Case] = [(file,) for file in files("values/phase*.yaml")]
ENGINES = [overlay for overlay in files("values/overlays/*.yaml") if not overlay.endswith("/sim.yaml")]
"""Overlays with vLLM in them; the simulator's own argv is tried in tests/llmd."""
OVERLAID: list[Case] = [(*phase, overlay) for phase in PHASES for overlay in ENGINES]
CASES = [*PHASES, *OVERLAID, *((file,) for file in files("charts/*/ci/*-values.yaml"))]

REFUSALS: dict[Case, str] = {
    ("values/phase2-nccl-legacy.yaml",): "has no P2pNcclConnector, which was removed in 0.24.0",
    ("charts/vllm-pd-nccl/ci/p2p-nccl-values.yaml",): "has no P2pNcclConnector, which was removed in 0.24.0",
    ("values/phase2-mooncake.yaml", "values/overlays/cpu.yaml"): "mooncake needs a GPU",
}
"""What the charts refuse for the installed release, so that no parser need see it."""


def refusal(case: Case) -> str:
    return next((reason for part, reason in REFUSALS.items() if set(part) <= set(case)), "")


def chart(case: Case) -> str:
    """A chart's own values belong to that chart, all others to the umbrella."""
    folders = case[0].split("/")
    return "/".join(folders[:2]) if folders[0] == "charts" else "charts/vllm-stack"


def argvs(objects: Objects) -> list[list[str]]:
    """What follows `vllm` in every engine of a rendering."""
    found = [pods.words(pod["containers"][0]) for pod in pods.engines(objects)]
    assert found, f"no engine among {objects.ids}"
    assert all(words[0] == "vllm" for words in found), found
    return [words[1:] for words in found]


@pytest.mark.parametrize("case", [case for case in CASES if not refusal(case)], ids="+".join)
def test_every_values_set_is_accepted(render: Render, parse: Parser, release: str, case: Case) -> None:
    for argv in argvs(render(*case, chart=chart(case), set=[f"global.vllm.version={release}"])):
        assert parse(argv).error == ""


@pytest.mark.parametrize("case", [case for case in CASES if refusal(case)], ids="+".join)
def test_what_the_release_cannot_do_is_refused_by_the_chart(render: Render, release: str, case: Case) -> None:
    assert refusal(case) in render.error(*case, chart=chart(case), set=[f"global.vllm.version={release}"])


def parsed(render: Render, parse: Parser, release: str, args: dict[str, Any]) -> Any:
    """What the parser makes of `global.vllm.args` on top of phase 1."""
    tree = {"global": {"vllm": {"version": release, "args": args}}}
    (argv,) = argvs(render("values/phase1.yaml", values=tree))
    return parse(argv)


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"tensor-paralel-size": 2}, "unrecognized arguments: --tensor-paralel-size=2"),
        (
            {"max-model-len": "1.048576e+06"},
            "argument --max-model-len: invalid human_readable_int_or_auto value: '1.048576e+06'",
        ),
        ({"enable-auto-tool-choice": True}, "Error: --enable-auto-tool-choice requires --tool-call-parser"),
    ],
    ids=["unknown flag", "number in Go's spelling", "flag without its companion"],
)
def test_wrong_arguments_are_refused(
    render: Render, parse: Parser, release: str, args: dict[str, Any], error: str
) -> None:
    assert parsed(render, parse, release, args).error == error


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("max-model-len", 1048576),
        ("kv-cache-memory-bytes", 2**36),
        ("max-num-seqs", 64),
        ("gpu-memory-utilization", 0.85),
        ("seed", 0),
        ("enable-prefix-caching", True),
        ("enable-prefix-caching", False),
        ("trust-remote-code", True),
        ("dtype", "float32"),
        ("chat-template", "{{ messages }}"),
        ("hf-overrides", {"rope_parameters": {"rope_theta": 10000000, "factor": 1.5}, "tie": False}),
        ("additional-config", {"numbers": [1, 1048576], "name": "a b"}),
        ("allowed-origins", ["https://chat.example.com", "*"]),
        ("middleware", ["one.Middleware", "two.Middleware"]),
        ("lora-target-modules", ["q_proj", "v_proj"]),
    ],
    ids=str,
)
def test_values_arrive_as_they_were_written(
    render: Render, parse: Parser, release: str, flag: str, value: Any
) -> None:
    result = parsed(render, parse, release, {flag: value})
    assert result.error == ""
    arrived = result.values[flag.replace("-", "_")]
    assert (arrived, type(arrived)) == (value, type(value))


def test_a_configuration_object_arrives_whole(render: Render, parse: Parser, release: str) -> None:
    config = {"enable_kv_cache_events": True, "endpoint": "tcp://*:5600", "buffer_steps": 1048576}
    arrived = parsed(render, parse, release, {"kv-events-config": config}).values["kv_events_config"]
    assert {key: arrived[key] for key in config} == config


def test_the_kv_connector_arrives_in_both_roles(render: Render, parse: Parser, release: str) -> None:
    objects = render("values/phase2-nccl.yaml", set=[f"global.vllm.version={release}"])
    configs = [parse(argv).values["kv_transfer_config"] for argv in argvs(objects)]
    roles = {(config["kv_connector"], config["kv_role"]) for config in configs}
    assert roles == {("NixlConnector", "kv_producer"), ("NixlConnector", "kv_consumer")}


def test_typed_values_arrive(render: Render, parse: Parser, release: str) -> None:
    tree = {
        "global": {
            "vllm": {
                "version": release,
                "model": {"revision": "main", "servedNames": ["chat", "Qwen/Qwen3-8B"]},
                "lora": {"modules": {"sql": {"path": "example/sql", "baseModel": "chat"}}},
            }
        },
        "base": {"port": 9000, "parallelism": {"tensor": 2, "pipeline": 3, "data": 4}},
    }
    (argv,) = argvs(render("values/phase1.yaml", values=tree))
    values = parse(argv).values
    expected = {
        "model_tag": "Qwen/Qwen3-8B",
        "revision": "main",
        "served_model_name": ["chat", "Qwen/Qwen3-8B"],
        "enable_lora": True,
        "lora_modules": [
            {"name": "sql", "path": "example/sql", "base_model_name": "chat", "is_3d_lora_weight": False}
        ],
        "port": 9000,
        "tensor_parallel_size": 2,
        "pipeline_parallel_size": 3,
        "data_parallel_size": 4,
        "shutdown_timeout": 120,
    }
    assert {key: values[key] for key in expected} == expected
