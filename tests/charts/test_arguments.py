"""The command line of an engine: the model, typed values, and any flag of `vllm serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.charts.containers import argv, engine

if TYPE_CHECKING:
    from tests.conftest import Render

PHASE1 = "values/phase1.yaml"


def with_args(args: dict[str, Any]) -> dict[str, Any]:
    return {"global": {"vllm": {"args": args}}}


def test_the_model_comes_first_and_the_command_is_written_out(render: Render) -> None:
    container = engine(render(PHASE1))
    assert container["command"] == ["vllm", "serve"]
    assert container["args"] == [
        "Qwen/Qwen3-8B",
        "--max-model-len=32768",
        "--port=8000",
        "--served-model-name",
        "Qwen/Qwen3-8B",
        "--shutdown-timeout=120",
    ]


@pytest.mark.parametrize(
    ("value", "items"),
    [
        (True, ["--x"]),
        (False, ["--no-x"]),
        (None, []),
        ("", ["--x="]),
        ("-1", ["--x=-1"]),
        ("two words", ["--x=two words"]),
        (7, ["--x=7"]),
        (0.85, ["--x=0.85"]),
        ({"a": {"b": [1, 1048576]}, "on": True}, ['--x={"a":{"b":[1,1048576]},"on":true}']),
    ],
    ids=repr,
)
def test_every_kind_of_value(render: Render, value: Any, items: list[str]) -> None:
    known = argv(render(PHASE1))
    assert [
        item for item in argv(render(PHASE1, values=with_args({"x": value}))) if item not in known
    ] == items


@pytest.mark.parametrize("number", [999999, 1048576, 10_000_000, 131072, 2**31, 2**53])
def test_whole_numbers_keep_all_their_digits(render: Render, number: int) -> None:
    assert f"--max-model-len={number}" in argv(render(PHASE1, values=with_args({"max-model-len": number})))
    assert f"--max-model-len={number}" in argv(
        render(PHASE1, set=[f"global.vllm.args.max-model-len={number}"])
    )


def test_an_engine_release_decides_on_shutdown_timeout(render: Render) -> None:
    old = argv(render(PHASE1, set=["global.vllm.version=0.17.1"]))
    new = argv(render(PHASE1, set=["global.vllm.version=0.18.0"]))
    assert "--shutdown-timeout=120" not in old
    assert "--shutdown-timeout=120" in new


def test_role_wins_over_global(render: Render) -> None:
    objects = render(PHASE1, values={"base": {"args": {"max-model-len": 4096, "max-num-seqs": 8}}})
    assert "--max-model-len=4096" in argv(objects)
    assert "--max-num-seqs=8" in argv(objects)


def test_null_takes_an_inherited_flag_away(render: Render) -> None:
    assert not [
        item
        for item in argv(render(PHASE1, values={"base": {"args": {"max-model-len": None}}}))
        if item.startswith("--max-model-len")
    ]


def test_parallelism_above_one_renders_its_flags(render: Render) -> None:
    items = argv(
        render(PHASE1, values={"base": {"parallelism": {"tensor": 4, "pipeline": 2, "data": 2}}}),
    )
    assert {"--tensor-parallel-size=4", "--pipeline-parallel-size=2", "--data-parallel-size=2"} <= set(items)
    assert not [item for item in argv(render(PHASE1)) if "parallel-size" in item]


def test_lora_adapters(render: Render) -> None:
    lora = {
        "modules": {"sql": {"path": "example/sql"}, "law": {"path": "/m/law", "baseModel": "b"}},
        "maxRank": 32,
    }
    items = argv(render(PHASE1, values={"global": {"vllm": {"lora": lora}}}))
    start = items.index("--lora-modules")
    assert items[start + 1 : start + 3] == [
        '{"base_model_name":"b","name":"law","path":"/m/law"}',
        '{"name":"sql","path":"example/sql"}',
    ]
    assert {"--enable-lora", "--max-lora-rank=32", "--max-loras=1"} <= set(items)
