"""`vllm-phases node-config`: what nodes are told agrees with what the engines ask for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.tool.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.tool.conftest import Outcome

CHART = ("--chart", ROOT / "charts/vllm-stack")


@pytest.fixture
def documents(command: Callable[..., Outcome]) -> Callable[..., list[Any]]:
    """The documents for a values file, and --set."""

    def run(phase: str, *more: str) -> list[Any]:
        done = command("node-config", *CHART, "-f", ROOT / f"values/{phase}.yaml", *more)
        assert (done.code, done.err) == (0, "")
        return list(yaml.safe_load_all(done.out))

    return run


def plugin(document: Any) -> dict[str, Any]:
    """The configurations of the device plugin, by name."""
    texts = document["config"]["map"]
    return {name: yaml.safe_load(text) for name, text in texts.items() if name != "default"}


@pytest.mark.parametrize(("mode", "key"), [("time-slicing", "timeSlicing"), ("mps", "mps")])
def test_shares_of_a_card_are_packed(documents: Callable[..., list[Any]], mode: str, key: str) -> None:
    (values,) = documents(f"phase3-{mode.replace('-', '')}", "--set", "hamiDecode.sharing.replicasPerGpu=3")
    ((name, config),) = plugin(values).items()
    assert name == f"{mode}-3"
    assert config["flags"]["plugin"] == {"sharedDevicesAllocationPolicy": "packed"}
    (sharing,) = config["sharing"].items()
    assert sharing[0] == key
    assert sharing[1]["renameByDefault"] is True
    assert sharing[1]["resources"] == [{"name": "nvidia.com/gpu", "replicas": 3}]
    assert sharing[1].get("failRequestsGreaterThanOne") == (True if mode == "time-slicing" else None)


def test_a_resource_of_the_usual_name_is_not_renamed(documents: Callable[..., list[Any]]) -> None:
    (values,) = documents("phase3-mps", "--set", "hamiDecode.resources.gpuResource=nvidia.com/gpu")
    assert plugin(values)["mps-2"]["sharing"]["mps"]["renameByDefault"] is False


@pytest.mark.parametrize("strategy", ["mixed", "single"])
def test_a_layout_of_mig_has_the_profile_of_the_engines(
    documents: Callable[..., list[Any]], strategy: str
) -> None:
    values, layouts = documents("phase3-mig", "--set", f"hamiDecode.sharing.migStrategy={strategy}")
    assert plugin(values) == {
        f"mig-{strategy}": {"version": "v1", "flags": {"migStrategy": strategy}},
    }
    cut = {"devices": "all", "mig-enabled": True, "mig-devices": {"3g.40gb": 2}}
    assert layouts == {"version": "v1", "mig-configs": {"all-3g.40gb": [cut]}}


def test_claims_need_the_layout_alone(documents: Callable[..., list[Any]]) -> None:
    (layouts,) = documents("phase3-dra")
    assert list(layouts["mig-configs"]) == ["all-3g.40gb"]


@pytest.mark.parametrize("phase", ["phase3", "phase3-nccl"])
def test_hami_splits_a_card_as_often_as_engines_are_meant_to_share_it(
    documents: Callable[..., list[Any]], phase: str
) -> None:
    (values,) = documents(phase, "--set", "hamiDecode.sharing.replicasPerGpu=3")
    assert values["devicePlugin"] == {
        "deviceSplitCount": 3,
        "deviceMemoryScaling": 1,
        "deviceCoreScaling": 1,
        "nodeSelector": {"gpu": "on"},
    }


def test_hami_is_told_on_which_nodes_it_makes_mig_instances(
    documents: Callable[..., list[Any]], command: Callable[..., Outcome]
) -> None:
    mode = ("--set", "hamiDecode.sharing.mode=hami-mig")
    (values,) = documents("phase3", *mode, "--node", "gpu-1", "--node", "gpu-2")
    assert json.loads(values["nodeConfiguration"]["config"]) == {
        "nodeconfig": [
            {"name": "gpu-1", "operatingmode": "mig"},
            {"name": "gpu-2", "operatingmode": "mig"},
        ]
    }
    unnamed = command("node-config", *CHART, "-f", ROOT / "values/phase3.yaml", *mode)
    assert (
        "# Name the nodes on which HAMi shall make MIG instances: --node NAME, once for each." in unnamed.out
    )


def test_replicas_of_several_pods_count_too(documents: Callable[..., list[Any]]) -> None:
    group = (
        "hamiDecode.workload=leaderWorkerSet,hamiDecode.parallelism.nodes=2,hamiDecode.parallelism.tensor=2"
    )
    (values,) = documents("phase3", "--set", group)
    assert values["devicePlugin"]["deviceSplitCount"] == 2


def test_where_nothing_is_shared_there_is_nothing_to_say(command: Callable[..., Outcome]) -> None:
    done = command("node-config", *CHART, "-f", ROOT / "values/phase2-llmd.yaml")
    assert (done.code, done.out, done.err) == (3, "", "no engine of these values shares a GPU\n")


def test_values_that_the_schema_refuses_are_told(command: Callable[..., Outcome]) -> None:
    done = command("node-config", *CHART, "--set", "hamiDecode.replicas=x")
    assert done.code == 1
    assert "hamiDecode.replicas" in done.err
