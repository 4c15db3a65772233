"""How an option is read: as the engine's own parser reads it (vllm/utils/argparse_utils.py over argparse)."""

from __future__ import annotations

import pytest
from vllm_phases.catalogue import load


@pytest.mark.parametrize(
    ("version", "written", "flag"),
    [
        ("0.33.0", "--tensor-parallel-size", "tensor-parallel-size"),
        ("0.33.0", "-tp", "tensor-parallel-size"),
        ("0.33.0", "--tensor_parallel_size=2", "tensor-parallel-size"),
        ("0.33.0", "--kv-transfer-config.kv_connector", "kv-transfer-config"),
        ("0.33.0", "--kv_transfer_config.kv_connector_extra_config.backends+=UCX", "kv-transfer-config"),
        ("0.33.0", "-n2", "nnodes"),
        ("0.33.0", "-O3", "optimization-level"),
        ("0.11.2", "-O3", "compilation-config"),
        ("0.33.0", "--device-memory-utilization", "gpu-memory-utilization"),
        ("0.20.2", "--no-enable-prefix-caching", "enable-prefix-caching"),
        ("0.33.0", "--disable-prefix-caching", "enable-prefix-caching"),
        ("0.33.0", "--disable-log-requests", "enable-log-requests"),
        ("0.16.0", "--disable-log-requests", "disable-log-requests"),
    ],
)
def test_a_known_spelling_leads_to_its_flag(version: str, written: str, flag: str) -> None:
    resolution = load(version).resolve(written)
    assert resolution.flag
    assert resolution.flag.name == flag
    assert not resolution.abbreviated


def test_spellings_that_0_33_hides_are_still_taken() -> None:
    flag = load("0.33.0").resolve("--no-enable-prefix-caching").flag
    assert flag
    assert flag.options == ("--enable-prefix-caching", "--disable-prefix-caching")
    assert flag.hidden == ("--no-enable-prefix-caching",)


@pytest.mark.parametrize(
    ("version", "written", "completed"),
    [
        ("0.33.0", "--kv-cache-memory", "--kv-cache-memory-bytes"),
        ("0.33.0", "--gpu_memory_util=0.5", "--gpu-memory-utilization"),
        ("0.30.0", "--device", "--device-ids"),
    ],
)
def test_a_unique_beginning_is_completed_and_said_to_be_short(
    version: str, written: str, completed: str
) -> None:
    resolution = load(version).resolve(written)
    assert resolution.matches == (completed,)
    assert resolution.flag is load(version).flags[completed]
    assert resolution.abbreviated


def test_a_beginning_of_several_options_is_ambiguous() -> None:
    resolution = load("0.33.0").resolve("--device")
    assert resolution.ambiguous
    assert set(resolution.matches) == {"--device-ids", "--device-memory-utilization"}
    assert resolution.flag is None


def test_two_spellings_of_one_flag_are_ambiguous_too_as_for_argparse() -> None:
    resolution = load("0.33.0").resolve("--data-parallel-sup")
    assert resolution.matches == ("--data-parallel-supervisor-port",)
    assert load("0.33.0").resolve("--data-parallel-size-loca").abbreviated
    assert load("0.20.2").resolve("--no-enable-lo").ambiguous


@pytest.mark.parametrize(
    ("version", "written", "near"),
    [
        ("0.33.0", "--tensor-paralel-size", "--tensor-parallel-size"),
        ("0.33.0", "--max_model_length=4096", "--max-model-len"),
        ("0.17.1", "--disable-log-requests", "--enable-log-requests"),
        ("0.33.0", "--xyzzy", None),
    ],
)
def test_an_unknown_option_has_a_nearest_one_if_any_is_near(
    version: str, written: str, near: str | None
) -> None:
    release = load(version)
    assert release.resolve(written).matches == ()
    assert release.nearest(written) == near


def test_a_flag_says_what_it_takes() -> None:
    flags = load("0.33.0").flags
    assert (flags["--port"].type, flags["--port"].default) == ("int", 8000)
    assert flags["--max-model-len"].type == "human int or auto"
    assert flags["--kv-cache-memory-bytes"].type == "optional human int"
    assert flags["--max-lora-rank"].choices == (1, 8, 16, 32, 64, 128, 256, 320, 512)
    assert (flags["--api-key"].type, flags["--api-key"].nargs) == ("optional str", "+")
    assert (flags["--enforce-eager"].type, flags["--enforce-eager"].action) == (None, "boolean")
    assert (flags["--headless"].type, flags["--headless"].action) == (None, "store_true")
    assert (flags["--compilation-config"].type, flags["--compilation-config"].default) == ("json", {})
