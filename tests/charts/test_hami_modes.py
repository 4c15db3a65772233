"""How a role shares its GPU: what each mode makes of the pods, and that mode none leaves them as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.charts.containers import engine, pod

if TYPE_CHECKING:
    from tests.conftest import Objects, Render

CHART = "charts/vllm-hami-decode"
NAME = "demo-hami-decode"
HAMI = {"global": {"vllm": {"hami": {"enabled": True, "acceptUnverifiedTransfer": True}}}}


def slices(**sharing: Any) -> dict[str, Any]:
    """Values of the chart: a mode, on a card of 80 GB."""
    return {
        **HAMI,
        "sharing": {"mode": "hami", "gpu": "h100-80", **sharing},
    }


def shared(mode: str, **sharing: Any) -> dict[str, Any]:
    return {"sharing": {"mode": mode, **sharing}}


def gpus(objects: Objects, name: str = NAME) -> dict[str, str]:
    """The extended resources of an engine, which requests and limits give alike."""
    resources = engine(objects, name)["resources"]
    found = [
        {key: amount for key, amount in resources[kind].items() if "/" in key}
        for kind in ("requests", "limits")
    ]
    assert found[0] == found[1]
    return found[0]


def flags(objects: Objects) -> dict[str, str]:
    """The plain flags of the engine."""
    pairs = (item[2:].partition("=") for item in engine(objects, NAME)["args"] if item.startswith("--"))
    return {name: value for name, _, value in pairs}


def environment(objects: Objects) -> dict[str, str]:
    return {item["name"]: item.get("value", "") for item in engine(objects, NAME)["env"]}


def pod_annotations(objects: Objects, name: str = NAME) -> dict[str, str]:
    metadata = objects.get(f"Deployment/{name}")["spec"]["template"]["metadata"]
    found: dict[str, str] = metadata.get("annotations", {})
    return found


def has_shm(objects: Objects) -> bool:
    return any(volume["name"] == "shm" for volume in pod(objects, NAME)["volumes"])


class TestHami:
    def test_two_slices_fill_a_card_and_a_third_does_not_fit(self, render: Render) -> None:
        objects = render(chart=CHART, values=slices())
        assert gpus(objects) == {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "39963"}
        assert 2 * 39963 < 81559 < 3 * 39963

    @pytest.mark.parametrize("replicas", [1, 2, 3, 7, 32])
    @pytest.mark.parametrize("gpu", ["a30", "a100-40", "h100-80", "h200"])
    def test_a_card_holds_as_many_as_were_asked_for(self, render: Render, gpu: str, replicas: int) -> None:
        objects = render(chart=CHART, values=slices(gpu=gpu, replicasPerGpu=replicas))
        memory = {"a30": 24576, "a100-40": 40960, "h100-80": 81559, "h200": 143771}[gpu]
        assert memory // int(gpus(objects)["nvidia.com/gpumem"]) == replicas

    def test_they_pack_cards_and_nodes(self, render: Render) -> None:
        objects = render(chart=CHART, values=slices())
        assert pod_annotations(objects) == {
            "hami.io/gpu-scheduler-policy": "binpack",
            "hami.io/node-scheduler-policy": "binpack",
            "vllm-phases.dev/replicas-per-gpu": "2",
        }
        assert pod(objects, NAME)["schedulerName"] == "hami-scheduler"
        assert "annotations" not in objects.get(f"Deployment/{NAME}")["metadata"]

    def test_a_finer_policy_that_packs_may_be_given(self, render: Render) -> None:
        values = {**slices(), "annotations": {"hami.io/gpu-scheduler-policy": "binpack,numa"}}
        assert (
            pod_annotations(render(chart=CHART, values=values))["hami.io/gpu-scheduler-policy"]
            == "binpack,numa"
        )

    def test_cores_are_counted_and_slow_nobody_down(self, render: Render) -> None:
        objects = render(chart=CHART, values=slices(cores=50))
        assert gpus(objects)["nvidia.com/gpucores"] == "50"
        assert environment(objects)["GPU_CORE_UTILIZATION_POLICY"] == "disable"
        throttled = render(chart=CHART, values=slices(cores=50, throttle=True))
        assert "GPU_CORE_UTILIZATION_POLICY" not in environment(throttled)

    def test_an_explicit_size_wins(self, render: Render) -> None:
        assert gpus(render(chart=CHART, values=slices(memoryMiB=30000)))["nvidia.com/gpumem"] == "30000"
        large = slices(gpu="", memoryMiB=2147483647)
        assert gpus(render(chart=CHART, values=large))["nvidia.com/gpumem"] == "2147483647"

    def test_tensor_parallelism_brings_what_slices_need(self, render: Render) -> None:
        values = {**slices(), "parallelism": {"tensor": 2}}
        objects = render(chart=CHART, values=values)
        assert gpus(objects) == {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "39963"}
        assert "disable-custom-all-reduce" in flags(objects)
        assert environment(objects)["NCCL_CUMEM_HOST_ENABLE"] == "0"
        assert "tensor parallelism over slices has hung" in objects.notes

    def test_shared_memory_is_always_there(self, render: Render) -> None:
        assert has_shm(render(chart=CHART, values=slices()))

    def test_a_mig_instance_is_chosen_by_its_memory(self, render: Render) -> None:
        objects = render(chart=CHART, values=slices(mode="hami-mig"))
        memory = int(gpus(objects)["nvidia.com/gpumem"])
        assert 20 * 1024 < memory < 40 * 1000  # more than 2g.20gb has, less than 3g.40gb
        assert pod_annotations(objects)["nvidia.com/vgpu-mode"] == "mig"


class TestWholeCards:
    def test_where_hami_manages_the_cluster_they_are_exclusive(self, render: Render) -> None:
        objects = render("values/phase2-llmd.yaml", values=HAMI)
        for role in ("prefill", "decode"):
            assert gpus(objects, f"demo-llmd-{role}") == {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "100"}
            assert pod(objects, f"demo-llmd-{role}")["schedulerName"] == "hami-scheduler"
        assert "schedulerName" not in pod(objects, "demo-proxy")
        assert "schedulerName" not in pod(objects, "demo-picker")

    def test_a_role_may_stay_out_of_it(self, render: Render) -> None:
        prefill = {"sharing": {"exclusive": False}, "scheduling": {"nodeSelector": {"gpu": "off"}}}
        objects = render("values/phase2-llmd.yaml", values={**HAMI, "llmd": {"prefill": prefill}})
        assert gpus(objects, "demo-llmd-prefill") == {"nvidia.com/gpu": "1"}
        assert "schedulerName" not in pod(objects, "demo-llmd-prefill")
        metadata = objects.get("Deployment/demo-llmd-prefill")["spec"]["template"]["metadata"]
        assert metadata["labels"]["hami.io/webhook"] == "ignore"

    def test_its_scheduler_may_have_another_name(self, render: Render) -> None:
        named = {"global": {"vllm": {"hami": {"enabled": True, "schedulerName": "hami-2"}}}}
        assert pod(render("values/phase1.yaml", values=named), "demo-server")["schedulerName"] == "hami-2"

    @pytest.mark.parametrize("accelerator", ["cpu", "amd"])
    def test_other_accelerators_are_none_of_hamis(self, render: Render, accelerator: str) -> None:
        values = {"global": {"vllm": {"hami": {"enabled": True}, "accelerator": accelerator}}}
        objects = render(chart="charts/vllm-base", values=values)
        assert "schedulerName" not in pod(objects, "demo-server")
        assert "nvidia.com/gpucores" not in gpus(objects, "demo-server")


class TestMig:
    @pytest.mark.parametrize(
        ("gpu", "replicas", "profile"),
        [
            ("h100-80", 1, "7g.80gb"),
            ("h100-80", 2, "3g.40gb"),
            ("h100-80", 3, "2g.20gb"),
            ("h100-80", 4, "1g.20gb"),
            ("h100-80", 5, "1g.10gb"),
            ("h200", 2, "3g.71gb"),
            ("a30", 2, "2g.12gb"),
        ],
    )
    def test_the_largest_profile_of_which_a_card_holds_enough(
        self, render: Render, gpu: str, replicas: int, profile: str
    ) -> None:
        objects = render(chart=CHART, values=shared("mig", gpu=gpu, replicasPerGpu=replicas))
        assert gpus(objects) == {f"nvidia.com/mig-{profile}": "1"}

    def test_by_strategy_single_the_node_says_which(self, render: Render) -> None:
        objects = render(chart=CHART, values=shared("mig", migStrategy="single"))
        assert gpus(objects) == {"nvidia.com/gpu": "1"}
        assert pod(objects, NAME)["nodeSelector"] == {
            "nvidia.com/mig.strategy": "single",
            "nvidia.com/mig.config": "all-3g.40gb",
        }


class TestOneCardForSeveral:
    @pytest.mark.parametrize(
        ("mode", "selector"),
        [
            ("time-slicing", {"nvidia.com/gpu.sharing-strategy": "time-slicing"}),
            ("mps", {"nvidia.com/mps.capable": "true"}),
        ],
    )
    def test_memory_is_shared_out_by_flags(self, render: Render, mode: str, selector: dict[str, str]) -> None:
        objects = render(chart=CHART, values=shared(mode, replicasPerGpu=3, kvCacheMiB=9000))
        assert gpus(objects) == {"nvidia.com/gpu.shared": "1"}
        assert pod(objects, NAME)["nodeSelector"] == selector
        assert flags(objects)["gpu-memory-utilization"] == "0.3"
        assert flags(objects)["kv-cache-memory-bytes"] == "9437184000"
        assert "its policy is `packed`" in objects.notes

    def test_the_resource_may_have_its_usual_name(self, render: Render) -> None:
        values = {
            **shared("mps", kvCacheMiB=9000),
            "resources": {"gpuResource": "nvidia.com/gpu"},
            "scheduling": {"nodeSelector": {"pool": "decode"}},
        }
        objects = render(chart=CHART, values=values)
        assert gpus(objects) == {"nvidia.com/gpu": "1"}
        assert pod(objects, NAME)["nodeSelector"] == {"nvidia.com/mps.capable": "true", "pool": "decode"}

    def test_mps_has_a_shared_memory_of_its_own(self, render: Render) -> None:
        offload = {"global": {"vllm": {"kvTiers": {"offload": {"gibPerPod": 8}}}}}
        values = {**offload, **shared("mps", kvCacheMiB=9000)}
        assert not has_shm(render(chart=CHART, values=values))
        assert has_shm(render(chart=CHART, values={**values, **shared("time-slicing", kvCacheMiB=9000)}))


class TestClaims:
    def claim(self, objects: Objects, kind: str) -> Any:
        reference = {"name": "gpu", f"{kind[0].lower()}{kind[1:]}Name": NAME}
        assert pod(objects, NAME)["resourceClaims"] == [reference]
        assert engine(objects, NAME)["resources"]["claims"] == [{"name": "gpu"}]
        assert gpus(objects) == {}
        found = objects.get(f"{kind}/{NAME}")
        assert found["apiVersion"] == "resource.k8s.io/v1"
        spec = found["spec"]["spec"] if kind.endswith("Template") else found["spec"]
        return spec["devices"]

    def test_each_pod_claims_a_mig_instance(self, render: Render) -> None:
        objects = render(chart=CHART, values=shared("dra"), kube_version="1.34.0")
        (request,) = self.claim(objects, "ResourceClaimTemplate")["requests"]
        assert request["exactly"] == {
            "deviceClassName": "mig.nvidia.com",
            "allocationMode": "ExactCount",
            "count": 1,
            "selectors": [
                {"cel": {"expression": "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'"}}
            ],
        }

    @pytest.mark.parametrize("claim", ["timeSlicing", "mps"])
    def test_pods_share_the_card_of_one_claim(self, render: Render, claim: str) -> None:
        values = {**shared("dra", claim=claim, kvCacheMiB=9000), "replicas": 2}
        objects = render(chart=CHART, values=values, kube_version="1.34.0")
        (config,) = self.claim(objects, "ResourceClaim")["config"]
        settings = config["opaque"]["parameters"]["sharing"]
        assert settings["strategy"] == {"timeSlicing": "TimeSlicing", "mps": "MPS"}[claim]
        assert flags(objects)["gpu-memory-utilization"] == "0.45"
        if claim == "mps":
            assert settings["mpsConfig"] == {
                "defaultActiveThreadPercentage": 50,
                "defaultPinnedDeviceMemoryLimit": "39963Mi",
            }

    def test_hamis_driver_gives_a_slice_to_each_pod(self, render: Render) -> None:
        accepted = {"global": {"vllm": {"hami": {"acceptUnverifiedTransfer": True}}}}
        values = {**accepted, **shared("hami-dra", cores=50)}
        objects = render(chart=CHART, values=values, kube_version="1.36.0")
        (request,) = self.claim(objects, "ResourceClaimTemplate")["requests"]
        assert request["exactly"]["deviceClassName"] == "hami-core-gpu.project-hami.io"
        assert request["exactly"]["capacity"] == {"requests": {"memory": "39963Mi", "cores": "50"}}
        assert "schedulerName" not in pod(objects, NAME)
        assert environment(objects)["GPU_CORE_UTILIZATION_POLICY"] == "disable"


@pytest.mark.parametrize("mode", ["hami", "hami-mig", "mig", "time-slicing", "mps", "dra", "hami-dra"])
def test_batch_limits_do_not_follow_the_memory_that_an_engine_sees(render: Render, mode: str) -> None:
    """vLLM's own fall to a quarter below 70 GiB."""
    values = slices(mode=mode, kvCacheMiB=9000)
    values["global"] = {"vllm": {"hami": {"enabled": "dra" not in mode, "acceptUnverifiedTransfer": True}}}
    objects = render(chart=CHART, values=values, kube_version="1.36.0")
    assert flags(objects)["max-num-seqs"] == "256"
    assert flags(objects)["max-num-batched-tokens"] == "8192"
    given = render(chart=CHART, values={**values, "args": {"max_num_seqs": 64}}, kube_version="1.36.0")
    assert flags(given)["max_num_seqs"] == "64"
    assert "max-num-seqs" not in flags(given)


def test_every_role_can_share(render: Render) -> None:
    """The block is the role's, whichever chart it is in."""
    sharing = {"sharing": {"mode": "mig", "migProfile": "1g.10gb"}}
    roles = {"prefill": sharing, "decode": sharing}
    for chart, values, names in (
        ("vllm-base", sharing, ["demo-server"]),
        ("vllm-llmd", roles, ["demo-llmd-prefill", "demo-llmd-decode"]),
        ("vllm-pd-nccl", roles, ["demo-prefill", "demo-decode"]),
    ):
        objects = render(chart=f"charts/{chart}", values=values)
        assert [gpus(objects, name) for name in names] == [{"nvidia.com/mig-1g.10gb": "1"}] * len(names)


def test_the_simulator_shares_nothing(render: Render) -> None:
    simulated = {"global": {"vllm": {"simulator": {"enabled": True}, "test": {"enabled": False}}}}
    objects = render("values/phase3.yaml", values=simulated)
    assert gpus(objects) == {}
    assert "schedulerName" not in pod(objects, NAME)
