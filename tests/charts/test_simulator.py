"""The simulator in the engines' place: the same values, without what only an engine has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from vllm_phases import catalogue

from tests.charts.containers import engine, env, pod

if TYPE_CHECKING:
    from tests.conftest import Objects, Render

SIM = "values/overlays/sim.yaml"
PHASES = {
    "values/phase1.yaml": ["demo-server"],
    "values/phase2-nccl.yaml": ["demo-prefill", "demo-decode"],
    "values/phase2-mooncake.yaml": ["demo-prefill", "demo-decode"],
    "values/phase2-llmd.yaml": ["demo-llmd-prefill", "demo-llmd-decode"],
}
LLMD = "values/phase2-llmd.yaml"
OPTIONS = set(catalogue.facts("simulator")["options"])


def vllm(**values: Any) -> dict[str, Any]:
    return {"global": {"vllm": values}}


def simulator(**values: Any) -> dict[str, Any]:
    return vllm(simulator=values)


def options(objects: Objects, name: str = "demo-server") -> list[str]:
    return [item for item in engine(objects, name)["args"] if item.startswith("--")]


@pytest.mark.parametrize("phase", PHASES)
def test_it_gets_only_what_it_knows(render: Render, phase: str) -> None:
    objects = render(phase, SIM)
    for name in PHASES[phase]:
        container = engine(objects, name)
        assert container["command"] == ["/app/llm-d-inference-sim"]
        assert container["image"] == "ghcr.io/llm-d/llm-d-inference-sim:v0.10.2"
        given = {item.removeprefix("--").partition("=")[0] for item in options(objects, name)}
        assert given <= OPTIONS
        assert {"model", "port", "served-model-name", "max-model-len", "force-dummy-tokenizer"} <= given


@pytest.mark.parametrize("phase", PHASES)
def test_it_needs_no_card_no_model_and_no_store(render: Render, phase: str) -> None:
    stores = {"offload": {"gibPerPod": 16}, "mooncakeStore": {"enabled": True}}
    wants = {
        "parallelism": {"tensor": 2},
        "resources": {"extended": {"rdma/ib": 1}},
        "cache": {"type": "pvc"},
    }
    roles = {"base": wants, **{layer: {"prefill": wants, "decode": wants} for layer in ("pdNccl", "llmd")}}
    objects = render(phase, SIM, values={**vllm(kvTiers=stores), **roles})
    for name in PHASES[phase]:
        assert engine(objects, name)["resources"] == {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "512Mi"},
        }
        assert [volume["name"] for volume in pod(objects, name)["volumes"]] == ["scratch"]
        assert {mount["name"] for mount in engine(objects, name)["volumeMounts"]} == {"scratch"}
    assert not [
        key for key in objects.ids if key.startswith(("PersistentVolumeClaim/", "ConfigMap/demo-prefill"))
    ]


def test_it_tells_who_answers(render: Render) -> None:
    objects = render("values/phase1.yaml", SIM, values=vllm(env={"TEAM": "search"}))
    assert env(objects) == {
        "POD_IP": {"fieldRef": {"fieldPath": "status.podIP"}},
        "POD_NAME": {"fieldRef": {"fieldPath": "metadata.name"}},
        "POD_NAMESPACE": {"fieldRef": {"fieldPath": "metadata.namespace"}},
        "TEAM": "search",
    }


def test_flags_take_the_forms_that_it_reads(render: Render) -> None:
    args = {
        "enable-prefix-caching": False,
        "enforce_eager": True,
        "gpu-memory-utilization": 0.8,
        "max-model-len": 1048576,
        "quantization": "fp8",
    }
    own = {"log-http": False, "enable-kvcache": True, "time-to-first-token": "200ms"}
    values = vllm(args=args, model={"servedNames": ["chat", "other"]}, simulator={"args": own})
    assert engine(render("values/phase1.yaml", SIM, values=values))["args"] == [
        "--enable-kvcache",
        "--no-enable-prefix-caching",
        "--enforce-eager",
        "--force-dummy-tokenizer",
        "--max-model-len=1048576",
        "--model=Qwen/Qwen3-8B",
        "--port=8000",
        "--served-model-name",
        "chat",
        "other",
        "--time-to-first-token=200ms",
    ]


def test_adapters_stay(render: Render) -> None:
    values = vllm(lora={"modules": {"sql": {"path": "example/sql"}}})
    args = engine(render("values/phase1.yaml", SIM, values=values))["args"]
    assert args[args.index("--lora-modules") + 1] == '{"name":"sql","path":"example/sql"}'
    assert not [item for item in args if item.startswith(("--enable-lora", "--max-lora-rank"))]


def test_mooncake_is_asked_for_on_its_only_port(render: Render) -> None:
    kv = vllm(kvTransfer={"connector": "mooncake"})
    objects = render(LLMD, SIM, values={**kv, "llmd": {"prefill": {"port": 9000}}})
    (sidecar,) = pod(objects, "demo-llmd-decode")["initContainers"]
    assert "--mooncake-bootstrap-port=9000" in sidecar["args"]
    template = objects.get("Deployment/demo-llmd-prefill")["spec"]["template"]
    assert template["metadata"]["annotations"]["vllm.ai/bootstrap-port"] == "9000"


def test_it_waits_before_it_drains_where_the_api_can(render: Render) -> None:
    """It has no program that sleeps, and ends its streams when it is told to stop."""
    new = engine(render(LLMD, SIM), "demo-llmd-prefill")
    old = engine(render(LLMD, SIM, kube_version="1.29.0"), "demo-llmd-prefill")
    assert new["lifecycle"] == {"preStop": {"sleep": {"seconds": 15}}}
    assert "lifecycle" not in old


def test_its_image_runs_as_a_user_of_its_own(render: Render) -> None:
    assert pod(render("values/phase1.yaml", SIM))["securityContext"]["runAsUser"] == 65532


def test_the_engines_image_is_another(render: Render) -> None:
    values = vllm(
        image={"repository": "registry.example.com/vllm", "tag": "v1", "pullPolicy": "Always"},
        simulator={
            "image": {"repository": "registry.example.com/sim", "pullPolicy": "Never"},
            "version": "0.10.1",
        },
    )
    container = engine(render("values/phase1.yaml", SIM, values=values))
    assert (container["image"], container["imagePullPolicy"]) == ("registry.example.com/sim:v0.10.1", "Never")


def test_a_release_reads_its_own_flags(render: Render) -> None:
    old = {"version": "0.10.0", "args": {"max-request-body-size-mb": 8}}
    message = "the simulator 0.10.0 has no such flag; take it out"
    error = render.error("values/phase1.yaml", SIM, values=simulator(**old))
    assert f"- global.vllm.simulator.args.max-request-body-size-mb: {message}" in error
    assert render("values/phase1.yaml", SIM, values=simulator(args=old["args"]))


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a release before all that is known": (
        "values/phase1.yaml",
        simulator(version="0.8.2"),
        "global.vllm.simulator.version: 0.8.2 is older than 0.9.2, the first release of the simulator that these charts"
        " know",
    ),
    "a flag that is misspelt": (
        "values/phase1.yaml",
        simulator(args={"time-to-frist-token": "1s"}),
        "global.vllm.simulator.args.time-to-frist-token: the simulator 0.10.2 has no such flag; take it out",
    ),
    "a flag that a value renders": (
        "values/phase1.yaml",
        simulator(args={"port": 9000}),
        "global.vllm.simulator.args.port: set base.port instead",
    ),
    "a test that it cannot run": (
        "values/phase1.yaml",
        vllm(test={"enabled": True}),
        "global.vllm.test.enabled: the simulator's image has no Python to run the test with; set false",
    ),
    "a connector that registers": (
        "values/phase2-nccl.yaml",
        vllm(kvTransfer={"connector": "p2pNccl"}),
        "global.vllm.kvTransfer.connector: the simulator registers with no router, which p2pNccl needs; set nixl or"
        " mooncake",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_do_is_refused(render: Render, name: str) -> None:
    phase, values, message = REFUSED[name]
    assert f"- {message}" in render.error(phase, SIM, values=values).strip().splitlines()
