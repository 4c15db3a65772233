"""What names of GPUs, sizes and models mean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from vllm_phases import rules
from vllm_phases.catalogue import facts
from vllm_phases.finding import Severity
from vllm_phases.model import Release, ranks
from vllm_phases.model.card import cards
from vllm_phases.model.weights import billions
from vllm_phases.rules.registry import Example

from tests.lint.examples import documents, findings

if TYPE_CHECKING:
    from vllm_phases.model import Engine

HAND_WRITTEN = (
    "gpu_cards",
    "gpu_labels",
    "hami",
    "dra",
    "mig_profiles",
    "shared_memory",
    "probes",
    "image_users",
)


def engine(arguments: str) -> Engine:
    (found,) = Release(documents(Example("yaml", f"args: [Qwen/Qwen3-8B, {arguments}]"))).engines
    return found


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Tesla-V100-SXM2-32GB", ["v100"]),
        ("nvidia-tesla-v100", ["v100"]),
        ("NVIDIA-A100-SXM4-80GB", ["a100-80"]),
        ("NVIDIA-A100-PCIE-40GB", ["a100-40"]),
        ("A100", ["a100-40", "a100-80"]),
        ("NVIDIA-A10G", ["a10"]),
        ("NVIDIA-H100-80GB-HBM3-MIG-3g.40gb", ["h100-80"]),
        ("NVIDIA-H100-NVL", ["h100-96"]),
        ("H100", ["h100-80", "h100-96"]),
        ("NVIDIA-GH200-480GB", []),
        ("NVIDIA-L40S", ["l40"]),
        ("NVIDIA-L4", ["l4"]),
        ("Tesla-P40", ["p4"]),
        ("NVIDIA-RTX-A4000", []),
        ("NVIDIA-H200-SHARED", ["h200"]),
    ],
)
def test_names_of_cards(name: str, meant: list[str]) -> None:
    assert [card.name for card in cards(name)] == meant


@pytest.mark.parametrize(
    ("arguments", "gpus"),
    [
        ("--enforce-eager", 1),
        ("-tp=4, --pipeline-parallel-size=2", 8),
        ("-tp=2, --data-parallel-size=4", 8),
        ("-tp=2, --data-parallel-size=4, --data-parallel-rank=1", 2),
        ("-tp=2, --data-parallel-size=16, --data-parallel-size-local=4", 8),
        ("-tp=2, --data-parallel-size=16, --data-parallel-start-rank=4", None),
        ("-tp=16, --nnodes=2", 8),
        ("-tp=16, --nnodes=$(NODES)", None),
        ("-tp=2, --data-parallel-size=16, --nnodes=2", 16),
        (
            "-tp=2, --data-parallel-size=16, --data-parallel-size-local=8, --nnodes=2, --data-parallel-hybrid-lb",
            16,
        ),
        ("-tp=8, --data-parallel-size=2, --data-parallel-external-lb, --nnodes=4", 4),
        ("-tp=2, --data-parallel-size=16, --nnodes=2, --data-parallel-hybrid-lb", None),
        ("-tp=16, --distributed-executor-backend=ray", None),
        ("-tp=$(TP)", None),
    ],
)
def test_gpus_that_an_engine_takes(arguments: str, gpus: int | None) -> None:
    assert ranks.needed(engine(arguments)) == gpus


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("Qwen/Qwen3-30B-A3B", 30),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", pytest.approx(44.8)),
        ("Qwen/Qwen3-0.6B", 0.6),
        ("deepseek-ai/DeepSeek-V3.1", 0),
        ("/models/llama-70b-fp8", 70),
    ],
)
def test_size_of_a_model_by_its_name(model: str, size: float) -> None:
    assert billions(model) == size


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_facts_are_sorted_and_have_a_source(name: str) -> None:
    assert list(facts(name)) == sorted(facts(name))
    assert [key for key, entry in facts(name).items() if not entry["source"]] == []


def test_patterns_of_cards_are_regular_expressions() -> None:
    assert all(re.compile(entry["names"]) for entry in facts("gpu_cards").values())


@pytest.mark.parametrize("variable", ["NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"])
def test_who_chooses_cards_by_a_variable_may_have_them_from_the_runtime(variable: str) -> None:
    text = f"env: [{{name: {variable}, value: '0'}}]\nresources: {{limits: {{cpu: 8}}}}\n"
    (found,) = findings(Example("yaml", text), rules.Selection(("RUN003",)))
    assert found.severity is Severity.WARNING
