"""The layer hamiDecode: how its engines join the pool of another layer, and what only the umbrella can refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.charts.containers import engine, pod
from tests.charts.test_hami_modes import NAME, gpus

if TYPE_CHECKING:
    from tests.conftest import Objects, Render

LLMD = "values/phase3.yaml"
NCCL = "values/phase3-nccl.yaml"
FILES = [
    "phase3.yaml",
    "phase3-nccl.yaml",
    "phase3-mig.yaml",
    "phase3-timeslicing.yaml",
    "phase3-mps.yaml",
    "phase3-dra.yaml",
]
LATEST = "1.36.0"


def labels(objects: Objects, deployment: str) -> dict[str, str]:
    found: dict[str, str] = objects.get(f"Deployment/{deployment}")["spec"]["template"]["metadata"]["labels"]
    return found


def matches(selector: dict[str, Any], of: dict[str, str]) -> bool:
    """Whether labels are selected."""
    return all(of.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        of.get(each["key"]) in each["values"] for each in selector.get("matchExpressions", ())
    )


def let_in(objects: Objects, to: str, by: str, port: int | str | None) -> bool:
    """Whether the policies that select one workload's pods let another's in at a port; None is every port."""
    policies = [item["spec"] for key, item in objects.by_id.items() if key.startswith("NetworkPolicy/")]
    rules = [
        rule
        for policy in policies
        if matches(policy["podSelector"], labels(objects, to))
        for rule in policy.get("ingress", ())
    ]
    return any(
        matches(peer["podSelector"], labels(objects, by))
        for rule in rules
        if not rule.get("ports") or port in [item["port"] for item in rule["ports"]]
        for peer in rule.get("from", ())
        if "podSelector" in peer
    )


def test_8_replicas_of_two_a_card_and_prefill_alone(render: Render) -> None:
    objects = render(LLMD)
    assert objects.get(f"Deployment/{NAME}")["spec"]["replicas"] == 8
    assert objects.get("Deployment/demo-llmd-decode")["spec"]["replicas"] == 0
    assert gpus(objects, "demo-llmd-prefill")["nvidia.com/gpucores"] == "100"


@pytest.mark.parametrize("file", FILES)
def test_notes_say_what_is_unverified(render: Render, file: str) -> None:
    notes = render(f"values/{file}", kube_version=LATEST).notes
    assert ("unverified on hardware" in notes) == (file in ("phase3.yaml", "phase3-nccl.yaml"))
    assert ("MIG instances" in notes) == ("unverified on hardware" in notes)
    assert ("larger batches" in notes) == ("unverified on hardware" in notes)


class TestPoolOfLlmd:
    def test_the_picker_finds_decode_of_both_layers(self, render: Render) -> None:
        objects = render(LLMD, values={"llmd": {"inferencePool": {"enabled": True}}})
        selector = objects.get("InferencePool/demo-pool")["spec"]["selector"]
        for name in (NAME, "demo-llmd-decode"):
            assert matches(selector, labels(objects, name))
            assert labels(objects, name)["llm-d.ai/role"] == "decode"

    def test_the_sidecar_is_that_of_the_layer(self, render: Render) -> None:
        objects = render(LLMD)
        assert pod(objects, NAME)["initContainers"] == pod(objects, "demo-llmd-decode")["initContainers"]

    @pytest.mark.parametrize("egress", ["open", "dns"])
    def test_policies_let_through_what_must_pass(self, render: Render, egress: str) -> None:
        objects = render(LLMD, values={"global": {"vllm": {"networkPolicy": {"egress": egress}}}})
        assert let_in(objects, NAME, "demo-proxy", 8000)
        assert let_in(objects, NAME, "demo-picker", 8000)
        assert not let_in(objects, NAME, "demo-proxy", "http")
        assert let_in(objects, NAME, "demo-llmd-prefill", None)
        assert let_in(objects, "demo-llmd-prefill", NAME, None)
        opens = objects.get("NetworkPolicy/demo-hami-decode-prefill")["spec"]["policyTypes"]
        assert opens == ["Ingress", *(["Egress"] if egress == "dns" else [])]

    def test_the_protection_of_the_sidecar_may_read_the_pool(self, render: Render) -> None:
        protected = {"routingSidecar": {"ssrfProtection": True}}
        values = {"llmd": {**protected, "inferencePool": {"enabled": True}}, "hamiDecode": protected}
        objects = render(LLMD, values=values)
        assert pod(objects, NAME)["automountServiceAccountToken"]
        binding = objects.get(f"RoleBinding/{NAME}")
        assert binding["roleRef"]["name"] == objects.get(f"Role/{NAME}")["metadata"]["name"]
        assert binding["subjects"][0]["name"] == pod(objects, NAME)["serviceAccountName"]

    def test_mixed_fleets_are_one_pool(self, render: Render) -> None:
        objects = render(LLMD, values={"llmd": {"decode": {"replicas": 2}}})
        assert gpus(objects, "demo-llmd-decode") == {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "100"}
        assert decode_servers(objects) == "demo-llmd-decode:8200 demo-hami-decode:8200"


class TestPoolOfTheRouter:
    def test_the_router_finds_decode_of_both_charts_by_one_label(self, render: Render) -> None:
        objects = render(NCCL)
        args = objects.get("Deployment/demo-router")["spec"]["template"]["spec"]["containers"][0]["args"]
        wanted = dict([args[args.index("--decode-selector") + 1].split("=")])
        assert wanted == {"vllm-phases.dev/decode": "demo-router"}
        found = [
            key.removeprefix("Deployment/")
            for key, item in objects.by_id.items()
            if key.startswith("Deployment/")
            and wanted.items() <= item["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert sorted(found) == ["demo-decode", NAME]

    def test_the_engine_listens_where_the_router_looks(self, render: Render) -> None:
        values = {
            "pdNccl": {"prefill": {"port": 9000}, "decode": {"port": 9000}},
            "hamiDecode": {"poolPort": 9000},
        }
        objects = render(NCCL, values=values)
        assert "--port=9000" in engine(objects, NAME)["args"]
        assert "initContainers" not in pod(objects, NAME)
        assert decode_servers(objects) == "demo-hami-decode:9000"

    def test_policies_let_through_what_must_pass(self, render: Render) -> None:
        objects = render(NCCL)
        assert let_in(objects, NAME, "demo-router", 8000)
        assert let_in(objects, NAME, "demo-prefill", None)
        assert let_in(objects, "demo-prefill", NAME, None)

    def test_nothing_changes_for_a_router_of_its_own_layer(self, render: Render) -> None:
        objects = render("values/phase2-nccl.yaml")
        assert "vllm-phases.dev/decode" not in labels(objects, "demo-decode")


def decode_servers(objects: Objects) -> str:
    """Where the test of the release looks for decode."""
    env = objects.get("Pod/demo-test")["spec"]["containers"][0]["env"]
    found: str = next(item["value"] for item in env if item["name"] == "VLLM_TEST_DECODE")
    return found


@pytest.mark.parametrize("kind", ["podMonitor", "serviceMonitor"])
def test_it_is_watched_guarded_and_scaled(render: Render, kind: str) -> None:
    values = {
        "global": {"vllm": {"monitoring": {"kind": kind}}},
        "hamiDecode": {"autoscaling": {"type": "keda"}},
    }
    objects = render(LLMD, values=values)
    of = labels(objects, NAME)
    monitor = objects.get(f"{kind[0].upper()}{kind[1:]}/{NAME}")
    assert matches(monitor["spec"]["selector"], of)
    assert matches(objects.get(f"PodDisruptionBudget/{NAME}")["spec"]["selector"], of)
    assert objects.get(f"ScaledObject/{NAME}")["spec"]["scaleTargetRef"]["name"] == NAME
    assert "replicas" not in objects.get(f"Deployment/{NAME}")["spec"]


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        (
            LLMD,
            {"llmd": {"enabled": False}, "base": {"enabled": True}, "frontDoor": {"to": "base"}},
            "hamiDecode.pool: the layer llmd is not enabled, and decode engines without prefill and front door serve "
            "nobody; set llmd.enabled to true, or hamiDecode.pool to the layer that runs",
        ),
        (
            LLMD,
            {"llmd": {"prefill": {"port": 9000}}},
            "hamiDecode.poolPort: 8000, but the pool is at 9000, the port of llmd.prefill; set them equal",
        ),
        (
            LLMD,
            {"llmd": {"routingSidecar": {"prefillRetries": 2}}},
            "hamiDecode.routingSidecar.prefillRetries: differs from llmd.routingSidecar.prefillRetries, but all decode "
            "engines of a pool work alike; set them equal",
        ),
        (
            LLMD,
            {"llmd": {"endpointPicker": {"prefixCache": {"type": "precise"}}}},
            "llmd.endpointPicker.prefixCache.type: precise, but engines of hamiDecode tell the picker nothing of their "
            "caches; set approximate",
        ),
        (
            LLMD,
            {"llmd": {"prefill": {"parallelism": {"data": 2, "expert": True, "loadBalancing": "external"}}}},
            "llmd.prefill.parallelism.loadBalancing: external gives the pool several ports, and pods of hamiDecode "
            "listen on one; set internal",
        ),
        (
            LLMD,
            {
                "llmd": {
                    "inferencePool": {"enabled": True},
                    "proxy": {"type": "gateway", "gateway": {"create": True}},
                }
            },
            "hamiDecode.poolClients: empty, so NetworkPolicies keep the Gateway of llmd.proxy from these engines; set "
            "its pods as a peer",
        ),
        (
            LLMD,
            {
                "llmd": {"prefill": {"parallelism": {"tensor": 3}}},
                "hamiDecode": {"parallelism": {"tensor": 2}},
            },
            "hamiDecode.parallelism.tensor: 2, but llmd.prefill has 3, and one must divide the other",
        ),
        (
            NCCL,
            {
                "global": {"vllm": {"version": "0.13.0"}},
                "pdNccl": {
                    "prefill": {"parallelism": {"tensor": 2}},
                    "decode": {"parallelism": {"tensor": 2}},
                },
            },
            "hamiDecode.parallelism.tensor: 1, but pdNccl.prefill has 2, and NIXL of vLLM 0.13.0 needs decode to have "
            "at least as many (0.14.0 does not)",
        ),
        (
            NCCL,
            {"pdNccl": {"router": {"sharedDecode": False}}},
            "pdNccl.router.sharedDecode: false, so the router would find the decode engines of its own layer only; "
            "set true",
        ),
    ],
)
def test_the_umbrella_refuses(render: Render, file: str, values: dict[str, Any], message: str) -> None:
    assert f"- {message}" in render.error(file, values=values).splitlines()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"port": 8000},
            "port: 8000 is the routing sidecar's, which listens on poolPort; set another, such as 8200",
        ),
        (
            {"poolPort": 5600},
            "global.vllm.kvTransfer.nixl.sideChannelPort: 5600 is poolPort; choose another",
        ),
        (
            {"global": {"vllm": {"kvTransfer": {"nixl": {"mode": "push"}}, "llmd": {"version": "0.8.0"}}}},
            "global.vllm.kvTransfer.connector: llm-d's sidecar 0.8.0 has no protocol for NixlPushConnector; set the "
            "connector nixl in mode pull, or a newer global.vllm.llmd.version",
        ),
    ],
)
def test_the_chart_refuses(render: Render, values: dict[str, Any], message: str) -> None:
    assert f"- {message}" in render.error(chart="charts/vllm-hami-decode", values=values).splitlines()
