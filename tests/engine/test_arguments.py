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
PHASES = sorted(file.name for file in ROOT.glob("values/phase*.yaml"))
OVERLAYS = sorted(file.name for file in ROOT.glob("values/overlays/*.yaml"))
CI = sorted(str(file.relative_to(ROOT / "charts")) for file in ROOT.glob("charts/*/ci/*-values.yaml"))


def argvs(objects: Objects) -> list[list[str]]:
    """What follows `vllm` in every engine of a rendering."""
    found = [pods.words(pod["containers"][0]) for pod in pods.engines(objects)]
    assert found, f"no engine among {objects.ids}"
    assert all(words[0] == "vllm" for words in found), found
    return [words[1:] for words in found]


@pytest.mark.parametrize("phase", PHASES)
def test_a_phase(render: Render, parse: Parser, release: str, phase: str) -> None:
    for argv in argvs(render(f"values/{phase}", set=[f"global.vllm.version={release}"])):
        assert parse(argv).error == ""


@pytest.mark.parametrize("overlay", OVERLAYS)
@pytest.mark.parametrize("phase", PHASES)
def test_a_phase_with_an_overlay(
    render: Render, parse: Parser, release: str, phase: str, overlay: str
) -> None:
    files = (f"values/{phase}", f"values/overlays/{overlay}")
    for argv in argvs(render(*files, set=[f"global.vllm.version={release}"])):
        assert parse(argv).error == ""


@pytest.mark.parametrize("file", CI)
def test_a_charts_own_values(render: Render, parse: Parser, release: str, file: str) -> None:
    chart = f"charts/{file.partition('/')[0]}"
    for argv in argvs(render(f"charts/{file}", chart=chart, set=[f"global.vllm.version={release}"])):
        assert parse(argv).error == ""


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
    config = {
        "kv_connector": "NixlConnector",
        "kv_role": "kv_producer",
        "kv_connector_extra_config": {"a": 1},
    }
    arrived = parsed(render, parse, release, {"kv-transfer-config": config}).values["kv_transfer_config"]
    assert {key: arrived[key] for key in config} == config


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
