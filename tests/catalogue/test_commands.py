"""`vllm-phases catalogue`: what the commands print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from vllm_phases.catalogue import chart_facts, versions
from vllm_phases.commands.catalogue import catalogue
from vllm_phases.finding import UsageError


def run(*arguments: str, colour: bool = False) -> Result:
    return CliRunner().invoke(catalogue, arguments, color=colour)


FROM_23_TO_24 = """\
vLLM 0.23.0 to 0.24.0

connectors
  + NixlPullConnector
  + NixlPushConnector
  - P2pNcclConnector

flags
  ~ --all2all-backend  takes value deepep_v2
  + --device-ids
  + --diffusion-config
  + --jit-monitor-verbose
  ~ --linear-backend  takes value flashinfer_b12x, flashinfer_cutedsl
  ~ --moe-backend  takes value flydsl
  + --prefill-schedule-interval
  ~ --safetensors-load-strategy  takes value eager, lazy, prefetch, torchao, None
  ~ --spec-method  takes value minimax_m3_mtp
  + --watermark

environment variables
  + VLLM_DEEPEP_V2_ALLOW_HYBRID_MODE
  + VLLM_DEEPEP_V2_ALLOW_MULTIPLE_REDUCTION
  + VLLM_DEEPEP_V2_PREFER_OVERLAP
  + VLLM_FASTSAFETENSORS_QUEUE_SIZE
  - VLLM_FLASHINFER_MOE_BACKEND
  + VLLM_MAX_AUDIO_DECODE_DURATION_S
  + VLLM_MAX_AUDIO_PREPROCESS_WORKERS
  - VLLM_MXFP4_USE_MARLIN
  + VLLM_MXFP8_EMULATION_DEQUANT_AT_LOAD
  - VLLM_NVFP4_GEMM_BACKEND
  + VLLM_REGEX_COMPILATION_TIMEOUT_S
  + VLLM_TRITON_FORCE_FIRST_CONFIG
  - VLLM_USE_FBGEMM
  - VLLM_USE_FLASHINFER_MOE_FP16
  - VLLM_USE_FLASHINFER_MOE_FP4
  - VLLM_USE_FLASHINFER_MOE_FP8
  - VLLM_USE_FLASHINFER_MOE_MXFP4_BF16
  - VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8
  - VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS
  - VLLM_USE_NVFP4_CT_EMULATIONS
  + VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS
  + VLLM_WSL2_ENABLE_PIN_MEMORY
"""

FROM_31_TO_32 = """\
vLLM 0.31.0 to 0.32.0

kv-transfer fields
  - kv_buffer_size
  - kv_ip
  - kv_parallel_size
  - kv_rank

flags
  ~ --allowed-origins  default ["*"] -> []
  + --custom-histogram-buckets
  ~ --disable-cascade-attn  default true -> null
  + --enable-hc-sp
  + --enable-shm-tensor-arena
  ~ --gdn-prefill-backend  takes value aiter_flydsl
  + --grpc-port
  ~ --kv-cache-dtype  takes value ultraquant_4bit
  ~ --mamba-cache-mode  no value any more: all
  ~ --moe-backend  takes value aiter_mega_moe, flashinfer_moe_ep_cutedsl; no value any more: flashinfer_moe_ep_mega_cutedsl
  + --sleep-mode-offload-cudagraph
  ~ --sparse-indexer-topk-backend  takes value aiter

environment variables
  + VLLM_CHAT_TEMPLATE_RENDER_TIMEOUT
  - VLLM_ENGINE_ITERATION_TIMEOUT_S
  + VLLM_FLASHINFER_MOE_A2A_LOW_PRECISION_COMBINE
  + VLLM_P2P_HANDSHAKE_TIMEOUT_S
  + VLLM_P2P_IDLE_TIMEOUT_S
  + VLLM_P2P_MAX_PEERS
  + VLLM_ROCM_AITER_MEGA_MOE_FUSE_SHARED_EXPERTS
  + VLLM_ROCM_MONO_DECODE
  + VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4
  + VLLM_ROCM_USE_AITER_TRITON_SPARSE_MLA
"""


@pytest.mark.parametrize(
    ("old", "new", "text"), [("0.23.0", "0.24.0", FROM_23_TO_24), ("0.31.0", "0.32.0", FROM_31_TO_32)]
)
def test_diff_shows_what_appears_vanishes_and_changes(old: str, new: str, text: str) -> None:
    result = run("diff", old, new)
    assert result.stdout == text
    assert result.exit_code == 0


def test_diff_of_equal_releases_says_so() -> None:
    assert run("diff", "0.20.1", "0.20.2").stdout == (
        "vLLM 0.20.1 to 0.20.2\n\n"
        "no difference in connectors, kv-transfer fields, flags, environment variables\n"
    )


def test_diff_downwards_shows_the_same_the_other_way_round() -> None:
    assert "  + P2pNcclConnector\n" in run("diff", "0.24.0", "0.23.0").stdout


def test_diff_as_json() -> None:
    answer = json.loads(run("diff", "0.31.0", "0.32.0", "--format", "json").stdout)
    assert list(answer) == ["old", "new", "connectors", "kv_transfer", "flags", "env"]
    assert (answer["old"], answer["new"]) == ("0.31.0", "0.32.0")
    assert answer["kv_transfer"][0] == {
        "name": "kv_buffer_size",
        "change": "removed",
        "before": {"default": 1000000000.0},
        "after": None,
    }
    origins = next(change for change in answer["flags"] if change["name"] == "--allowed-origins")
    assert origins == {
        "name": "--allowed-origins",
        "change": "changed",
        "before": {"default": ["*"]},
        "after": {"default": []},
    }


def test_diff_says_which_spellings_came_and_went() -> None:
    text = run("diff", "0.32.0", "0.33.0").stdout
    assert "  ~ --enable-prefix-caching  also --disable-prefix-caching\n" in text


def test_a_terminal_gets_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[31m  - P2pNcclConnector\x1b[0m\n" in run("diff", "0.23.0", "0.24.0", colour=True).stdout


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert run("diff", "0.23.0", "0.24.0", colour=True).stdout == FROM_23_TO_24


def test_show_lists_what_a_release_knows() -> None:
    lines = run("show", "0.23.0").stdout.splitlines()
    assert lines[:3] == ["vLLM 0.23.0", "", "connectors (15)"]
    assert "  kv_ip: str = 127.0.0.1" in lines
    assert "  kv_buffer_device: str = (computed)" in lines
    assert "  --tensor-parallel-size, -tp; int; default 1" in lines
    assert "  --api-key; optional str +; default null" in lines
    assert "  VLLM_DISABLE_REQUEST_ID_RANDOMIZATION" in lines


def test_show_as_json() -> None:
    answer = json.loads(run("show", "0.33.0", "--format", "json").stdout)
    assert answer["version"] == "0.33.0"
    assert answer["flags"]["shutdown-timeout"] == {
        "name": "shutdown-timeout",
        "options": ["--shutdown-timeout"],
        "hidden": [],
        "dest": "shutdown_timeout",
        "default": 0,
        "type": "int",
        "choices": None,
        "nargs": None,
        "action": "store",
    }
    assert answer["kv_transfer"]["kv_port"] == {"type": "int", "default": 14579, "computed": False}
    assert "NixlConnector" in answer["connectors"]
    assert "VLLM_ENGINE_READY_TIMEOUT_S" in answer["env"]


@pytest.mark.parametrize(
    ("version", "note"),
    [
        ("v0.23.0", ""),
        ("0.12.7", "note: vLLM 0.12.7 is not in the catalogue; 0.12.0 stands in for it\n"),
        (
            "0.99.0",
            f"note: vLLM 0.99.0 is newer than the catalogue; {versions()[-1]} stands in for it\n",
        ),
    ],
)
def test_a_release_that_stands_in_for_another_is_named(version: str, note: str) -> None:
    assert run("show", version).stderr == note


def test_versions_are_listed_oldest_first() -> None:
    assert run("versions").stdout.split() == list(versions())


def test_the_charts_are_what_the_catalogue_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    result = run("chart", "--check")
    assert result.output == "the charts are up to date\n"
    assert result.exit_code == 0


@pytest.fixture
def charts(tmp_path: Path) -> list[Path]:
    """The template files in a repository of their own, which does not have them yet."""
    files = [tmp_path / file for file in chart_facts.render()]
    for file in files:
        file.parent.mkdir(parents=True)
    return files


def test_the_charts_are_written(charts: list[Path], tmp_path: Path) -> None:
    assert run("chart", "--root", str(tmp_path)).stdout == "".join(f"{file} written\n" for file in charts)
    assert run("chart", "--root", str(tmp_path), "--check").exit_code == 0


def test_a_chart_that_differs_is_found_and_left_alone(charts: list[Path], tmp_path: Path) -> None:
    run("chart", "--root", str(tmp_path))
    file = charts[0]
    file.write_text(file.read_text().replace('"0.18.0"', '"0.17.0"'))
    before = file.read_bytes()
    result = run("chart", "--check", "--root", str(tmp_path))
    assert result.stderr == f"{file} differs from the catalogue: run `vllm-phases catalogue chart`\n"
    assert result.exit_code == 1
    assert file.read_bytes() == before


def test_charts_are_written_only_where_charts_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    error = run("chart").exception
    assert isinstance(error, UsageError)
    assert str(error) == (
        "charts/vllm-common/templates is no folder: run this at the root of the repository, or give --root"
    )


def defined(name: str) -> Any:
    """The JSON of a define."""
    (text,) = (text for text in chart_facts.render().values() if f'define "{name}"' in text)
    return json.loads(text.partition(f'{{{{- define "{name}" -}}}}')[2].removesuffix("{{- end -}}\n"))


def test_llm_ds_facts_are_those_of_its_releases() -> None:
    content = defined("vllm-llmd.facts")
    assert content["releases"] == ["0.8.0", "0.9.0", "0.10.0"]
    assert content["sidecar_connectors"]["mooncake"] == {"since": "0.9.0", "engines": ["MooncakeConnector"]}
    assert content["options"]["sidecar"]["model-server-port"] == {"since": "0.10.0"}
    assert content["gateways"]["istio"] == {
        "class": "istio",
        "class_in_service": True,
        "headers": "envoyFilter",
    }


def test_the_define_holds_json_that_templates_read() -> None:
    content = defined("vllm-common.facts")
    assert content["engine"] == {"oldest": versions()[0], "newest": versions()[-1]}
    assert content["features"]["shutdownTimeout"] == {"since": "0.18.0", "until": None}
    assert content["images"]["nvidia"] == {
        "repository": "vllm/vllm-openai",
        "tag": "v{version}",
        "since": "0.11.0",
        "gpuResource": "nvidia.com/gpu",
        "nonRootSince": "0.22.0",
    }
    assert content["metrics"]["num_requests_waiting"] == {
        "name": "vllm:num_requests_waiting",
        "since": "0.11.0",
        "until": None,
    }
