"""Replicas of several pods, and who serves their data-parallel ranks: what is rendered, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from vllm_phases import catalogue
from vllm_phases.render import DEFAULT_KUBE_VERSION, Release, RenderError
from vllm_phases.render.embedded import EmbeddedRenderer
from vllm_phases.values import load

from tests.conftest import ROOT

if TYPE_CHECKING:
    from tests.conftest import Objects, Render

PHASE1 = "values/phase1.yaml"
NCCL = "values/phase2-nccl.yaml"
LLMD = "values/phase2-llmd.yaml"
WIDE = "values/overlays/wide-ep.yaml"
LEADER = "$(LWS_LEADER_ADDRESS)"
INDEX = "--node-rank=$(LWS_WORKER_INDEX)"
SPANNING = {"workload": "leaderWorkerSet", "parallelism": {"tensor": 16, "nodes": 2}}


def ranks(data: int, nodes: int, balancing: str = "internal", **more: Any) -> dict[str, Any]:
    """A role of data-parallel ranks that share experts."""
    workload = "leaderWorkerSet" if nodes > 1 else "deployment"
    parallelism = {"data": data, "nodes": nodes, "expert": True, "loadBalancing": balancing, **more}
    return {"workload": workload, "parallelism": parallelism}


def vllm(**values: Any) -> dict[str, Any]:
    return {"global": {"vllm": values}}


def base(role: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"base": {**role, **more}}


def llmd(**values: Any) -> dict[str, Any]:
    return {"llmd": values}


def group(objects: Objects, name: str = "demo-server") -> Any:
    return objects.get(f"LeaderWorkerSet/{name}")["spec"]


def templates(objects: Objects, name: str = "demo-server") -> dict[str, Any]:
    template = group(objects, name)["leaderWorkerTemplate"]
    return {key: template[key] for key in ("leaderTemplate", "workerTemplate") if key in template}


def engines(objects: Objects) -> list[Any]:
    """The container of every engine template, whichever workload it belongs to."""
    found = []
    for document in objects.by_id.values():
        spec = document.get("spec") or {}
        below = spec.get("leaderWorkerTemplate", {"template": spec.get("template")})
        for pod in below.values():
            containers = pod["spec"]["containers"] if isinstance(pod, dict) else []
            found += [container for container in containers if container["name"] == "vllm"]
    return found


def engine(template: Any) -> Any:
    (container,) = [item for item in template["spec"]["containers"] if item["name"] == "vllm"]
    return container


def flags(args: list[str]) -> set[str]:
    """The arguments that place an engine among others."""
    words = "parallel", "node", "master", "headless", "executor", "all2all"
    return {item for item in args if any(word in item for word in words)}


class TestOneEngineOverPods:
    def test_leader_and_worker_differ_by_what_serves(self, render: Render) -> None:
        leader, worker = map(engine, templates(render(PHASE1, values=base(SPANNING))).values())
        assert flags(leader["args"]) == {
            "--distributed-executor-backend=mp",
            f"--master-addr={LEADER}",
            "--nnodes=2",
            INDEX,
            "--tensor-parallel-size=16",
        }
        assert flags(worker["args"]) == flags(leader["args"]) | {"--headless"}
        assert leader["ports"] == [{"name": "http", "containerPort": 8000}]
        assert {"ports", "startupProbe", "readinessProbe", "livenessProbe"}.isdisjoint(worker)
        assert [item["resources"]["limits"]["nvidia.com/gpu"] for item in (leader, worker)] == ["8", "8"]
        assert leader["env"] == worker["env"]
        assert "VLLM_HOST_IP" in [item["name"] for item in leader["env"]]

    def test_the_group_lives_and_dies_together(self, render: Render) -> None:
        spec = group(render(PHASE1, values=base(SPANNING, replicas=3, rollout={"maxSurge": "50%"})))
        assert (spec["replicas"], spec["leaderWorkerTemplate"]["size"]) == (3, 2)
        assert spec["leaderWorkerTemplate"]["restartPolicy"] == "RecreateGroupOnPodRestart"
        assert spec["startupPolicy"] == "LeaderCreated"
        assert spec["networkConfig"] == {"subdomainPolicy": "UniquePerReplica"}
        assert spec["rolloutStrategy"] == {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"maxSurge": "50%", "maxUnavailable": 1},
        }

    def test_workers_outlast_the_requests(self, render: Render) -> None:
        leader, worker = templates(render(PHASE1, values=base(SPANNING))).values()
        sleeps = [engine(item)["lifecycle"]["preStop"]["exec"]["command"][1] for item in (leader, worker)]
        assert sleeps == ["15", "135"]
        assert leader["spec"]["terminationGracePeriodSeconds"] == 150
        assert worker["spec"]["terminationGracePeriodSeconds"] == 150
        assert [item for item in engine(worker)["args"] if "shutdown-timeout" in item] == []

    def test_only_the_leader_is_found(self, render: Render) -> None:
        objects = render(PHASE1, values={**base(SPANNING), **vllm(monitoring={"kind": "podMonitor"})})
        labels = [item["metadata"]["labels"] for item in templates(objects).values()]
        for found in ("Service/demo-server", "Service/demo-front-door", "PodMonitor/demo-server"):
            selector = objects.get(found)["spec"]["selector"]
            wanted = selector.get("matchLabels", selector)
            assert [wanted.items() <= item.items() for item in labels] == [True, False], found

    def test_budget_and_policy_are_for_all(self, render: Render) -> None:
        objects = render(PHASE1, values=base(SPANNING))
        selector = {
            "matchLabels": {
                "app.kubernetes.io/name": "vllm-base",
                "app.kubernetes.io/instance": "demo",
            },
            "matchExpressions": [
                {
                    "key": "app.kubernetes.io/component",
                    "operator": "In",
                    "values": ["server", "server-worker"],
                }
            ],
        }
        policy = objects.get("NetworkPolicy/demo-server")["spec"]
        assert objects.get("PodDisruptionBudget/demo-server")["spec"]["selector"] == selector
        assert policy["podSelector"] == selector
        assert policy["ingress"][1:] == [{"from": [{"podSelector": selector}]}]
        closed = render(PHASE1, values={**base(SPANNING), **vllm(networkPolicy={"egress": "dns"})})
        assert closed.get("NetworkPolicy/demo-server")["spec"]["egress"][0] == {
            "to": [{"podSelector": selector}]
        }

    @pytest.mark.parametrize(
        ("kind", "type"), [("HorizontalPodAutoscaler", "hpa"), ("ScaledObject", "keda")], ids=str
    )
    def test_an_autoscaler_scales_groups(self, render: Render, kind: str, type: str) -> None:
        objects = render(PHASE1, values=base(SPANNING, autoscaling={"type": type}))
        assert objects.get(f"{kind}/demo-server")["spec"]["scaleTargetRef"] == {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "name": "demo-server",
        }
        assert "replicas" not in group(objects)
        if type == "keda":
            query = objects.get("ScaledObject/demo-server")["spec"]["triggers"][0]["metadata"]["query"]
            assert 'pod=~"demo-server-[0-9]+(-[0-9]+)?"' in query

    def test_placement(self, render: Render) -> None:
        values = base(SPANNING, group={"exclusiveTopology": "example.com/rack"})
        metadata = render(PHASE1, values=values).get("LeaderWorkerSet/demo-server")["metadata"]
        assert metadata["annotations"] == {
            "leaderworkerset.sigs.k8s.io/exclusive-topology": "example.com/rack"
        }

    def test_names_leave_room_for_the_numbers_of_pods(self, render: Render) -> None:
        def name(override: str) -> str:
            objects = render(PHASE1, values={**base(SPANNING), **vllm(nameOverride=override)})
            (found,) = (item for item in objects.ids if item.startswith("LeaderWorkerSet/"))
            return found.partition("/")[2]

        assert name("a" * 41) == "a" * 41 + "-server"
        assert len(name("a" * 42)) == 48
        assert name("a" * 52 + "b") != name("a" * 53)

    def test_it_replaces_the_deployment(self, render: Render) -> None:
        before, after = set(render(PHASE1).ids), set(render(PHASE1, values=base(SPANNING)).ids)
        assert before ^ after == {"Deployment/demo-server", "LeaderWorkerSet/demo-server"}

    def test_the_notes_wait_for_it(self, render: Render) -> None:
        assert "rollout status deployment" in render(PHASE1).notes
        assert "wait leaderworkerset --for condition=Available" in render(PHASE1, values=base(SPANNING)).notes

    def test_a_store_of_one_node_is_not_enough(self, render: Render) -> None:
        message = render.error(PHASE1, values=base(SPANNING, cache={"type": "pvc"}))
        assert "base.cache.accessMode: ReadWriteOnce serves one node, but 2 pods would share" in message

    def test_offloading_is_told_the_bytes_of_all_pods_of_a_rank(self, render: Render) -> None:
        def told(role: dict[str, Any]) -> str:
            values = {**base(role), **vllm(kvTiers={"offload": {"gibPerPod": 8}})}
            args: list[str] = engines(render(PHASE1, values=values))[0]["args"]
            (config,) = [item for item in args if "kv-transfer" in item]
            return config.partition('"cpu_bytes_to_use":')[2].partition("}")[0]

        gib = 1024**3
        assert told(SPANNING) == str(16 * gib)
        assert told({"parallelism": {"data": 4}}) == str(2 * gib)

    def test_a_release_whose_name_begins_with_a_digit_needs_another(self) -> None:
        release = Release("1st", "default", DEFAULT_KUBE_VERSION)
        sets = ["workload=leaderWorkerSet", "parallelism.tensor=2", "parallelism.nodes=2"]
        with pytest.raises(RenderError) as caught:
            EmbeddedRenderer().render(ROOT / "charts/vllm-base", load([], sets), release)
        assert "global.vllm.nameOverride: the release name 1st begins with a digit" in str(caught.value)


class TestDataParallelRanks:
    def test_internal_has_one_server(self, render: Render) -> None:
        leader, worker = map(engine, templates(render(PHASE1, values=base(ranks(16, 2)))).values())
        assert flags(leader["args"]) == {
            "--data-parallel-size=16",
            "--data-parallel-size-local=8",
            "--enable-expert-parallel",
            f"--master-addr={LEADER}",
            "--nnodes=2",
            INDEX,
        }
        assert flags(worker["args"]) == flags(leader["args"]) | {"--headless"}

    def test_workers_are_not_told_how_many_servers_to_start(self, render: Render) -> None:
        objects = render(PHASE1, values={**base(ranks(16, 2)), **vllm(args={"api-server-count": 4})})
        leader, worker = (engine(item)["args"] for item in templates(objects).values())
        assert "--api-server-count=4" in leader
        assert "--api-server-count=4" not in worker

    def test_hybrid_has_a_server_on_every_pod(self, render: Render) -> None:
        objects = render(PHASE1, values=base(ranks(16, 2, "hybrid")))
        (pod,) = templates(objects).values()
        assert {"--data-parallel-hybrid-lb", "--nnodes=2"} <= flags(engine(pod)["args"])
        assert "--headless" not in engine(pod)["args"]
        assert (
            objects.get("Service/demo-server")["spec"]["selector"].items()
            <= pod["metadata"]["labels"].items()
        )

    def test_external_with_one_rank_a_pod(self, render: Render) -> None:
        (pod,) = templates(render(PHASE1, values=base(ranks(2, 2, "external", tensor=8)))).values()
        assert flags(engine(pod)["args"]) == {
            "--data-parallel-external-lb",
            "--data-parallel-size=2",
            "--enable-expert-parallel",
            f"--master-addr={LEADER}",
            "--nnodes=2",
            INDEX,
            "--tensor-parallel-size=8",
        }

    def test_external_with_several_has_a_supervisor(self, render: Render) -> None:
        objects = render(LLMD, values=llmd(decode=ranks(16, 2, "external")))
        (pod,) = templates(objects, "demo-llmd-decode").values()
        assert flags(engine(pod)["args"]) == {
            f"--data-parallel-address={LEADER}",
            "--data-parallel-multi-port-external-lb",
            "--data-parallel-size=16",
            "--data-parallel-size-local=8",
            "--data-parallel-supervisor-port=9256",
            "--enable-expert-parallel",
            INDEX,
        }
        assert [(port["name"], port["containerPort"]) for port in engine(pod)["ports"]] == [
            ("http", 8200),
            *((f"http-{rank}", 8200 + rank) for rank in range(1, 8)),
            ("health", 9256),
        ]
        probes = [
            engine(pod)[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "readiness", "liveness")
        ]
        assert probes == ["health"] * 3

    def test_exchange_of_tokens(self, render: Render) -> None:
        objects = render(PHASE1, values=base(ranks(2, 1, all2all="deepep_low_latency")))
        assert "--all2all-backend=deepep_low_latency" in engines(objects)[0]["args"]


class TestPool:
    """llm-d's picker chooses among ports."""

    PORTS = tuple(range(8000, 8004))

    @pytest.fixture
    def objects(self, render: Render) -> Objects:
        values = llmd(decode=ranks(4, 1, "external"), inferencePool={"enabled": True})
        return render(LLMD, values={**values, **vllm(monitoring={"kind": "podMonitor"})})

    def test_every_rank_has_a_port_on_both_sides_of_the_sidecar(self, objects: Objects) -> None:
        (sidecar,) = objects.get("Deployment/demo-llmd-decode")["spec"]["template"]["spec"]["initContainers"]
        assert "--data-parallel-size=4" in sidecar["args"]
        assert tuple(port["containerPort"] for port in sidecar["ports"]) == self.PORTS
        pool = objects.get("InferencePool/demo-pool")["spec"]["targetPorts"]
        assert tuple(port["number"] for port in pool) == self.PORTS

    def test_a_picker_without_pool_knows_the_ports(self, render: Render) -> None:
        objects = render(LLMD, values=llmd(decode=ranks(4, 1, "external")))
        picker = objects.get("Deployment/demo-picker")["spec"]["template"]["spec"]["containers"][0]["args"]
        assert "--endpoint-target-ports=8000,8001,8002,8003" in picker

    def test_a_pod_with_fewer_ports_says_so(self, objects: Objects, render: Render) -> None:
        def annotations(objects: Objects, role: str) -> Any:
            template = objects.get(f"Deployment/demo-llmd-{role}")["spec"]["template"]
            return template["metadata"].get("annotations")

        assert annotations(objects, "prefill") == {"llm-d.ai/active-ports": "8000"}
        assert annotations(objects, "decode") is None
        image = {"endpointPicker": {"image": {"repository": "registry.example.com/picker"}}}
        values = {**llmd(decode=ranks(4, 1, "external"), **image), **vllm(llmd={"version": "0.8.0"})}
        old = render(LLMD, values=values)
        assert annotations(old, "prefill") == {"inference.networking.k8s.io/active-ports": "8000"}
        assert annotations(render(LLMD), "prefill") is None

    def test_policy_service_and_monitor_know_every_port(self, objects: Objects) -> None:
        names = ["http", "http-1", "http-2", "http-3"]
        policy, service, monitor = (
            objects.get(f"{kind}/demo-llmd-decode")["spec"]
            for kind in ("NetworkPolicy", "Service", "PodMonitor")
        )
        http, sidecar, _ = policy["ingress"]
        assert [port["port"] for port in http["ports"]] == names
        assert [port["port"] for port in sidecar["ports"]] == list(range(8000, 8004))
        assert [(port["port"], port["targetPort"]) for port in service["ports"]] == list(
            zip(range(8200, 8204), names, strict=True)
        )
        assert [endpoint["port"] for endpoint in monitor["podMetricsEndpoints"]] == names

    def test_the_test_of_the_release_asks_every_rank(self, objects: Objects, render: Render) -> None:
        alone = render(
            "charts/vllm-llmd/ci/default-values.yaml",
            chart="charts/vllm-llmd",
            values={"decode": ranks(2, 1, "external")},
        )
        found = {
            item["name"]: item.get("value")
            for item in alone.get("Pod/demo-test")["spec"]["containers"][0]["env"]
        }
        assert found["VLLM_TEST_DECODE"] == "demo-llmd-decode:8200 demo-llmd-decode:8201"
        assert found["VLLM_TEST_PREFILL"] == "demo-llmd-prefill:8000"

    def test_it_finds_every_server_of_a_pod(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VLLM_TEST_URL", "http://demo")
        monkeypatch.setenv("VLLM_TEST_MODEL", "m")
        program = (ROOT / "charts/vllm-common/files/helm_test.py").read_text().partition("\ndef main")[0]
        defined: dict[str, Any] = {}
        exec(program, defined)
        found = defined["pods"]("127.0.0.1:8200 127.0.0.1:8201")
        assert found == ["http://127.0.0.1:8200", "http://127.0.0.1:8201"]

    def test_workers_belong_to_no_pool_and_have_no_sidecar(self, render: Render) -> None:
        protected = {"routingSidecar": {"ssrfProtection": True}, "inferencePool": {"enabled": True}}
        objects = render(LLMD, values=llmd(decode=SPANNING, **protected))
        leader, worker = templates(objects, "demo-llmd-decode").values()
        pool = objects.get("InferencePool/demo-pool")["spec"]["selector"]["matchLabels"]
        assert [pool.items() <= item["metadata"]["labels"].items() for item in (leader, worker)] == [
            True,
            False,
        ]
        assert [len(item["spec"].get("initContainers", ())) for item in (leader, worker)] == [1, 0]
        assert [item["spec"]["automountServiceAccountToken"] for item in (leader, worker)] == [True, False]
        assert leader["spec"]["serviceAccountName"] == worker["spec"]["serviceAccountName"]

    @pytest.mark.parametrize(("file", "layer"), [(LLMD, "llmd"), (NCCL, "pdNccl")], ids=["llmd", "nccl"])
    def test_engines_of_both_roles_reach_each_others_workers(
        self, render: Render, file: str, layer: str
    ) -> None:
        objects = render(file, values={layer: {"prefill": SPANNING, "decode": SPANNING}})
        prefix = "llmd-" if layer == "llmd" else ""
        wanted = [[f"{prefix}{role}", f"{prefix}{role}-worker"] for role in ("prefill", "decode")]
        for role in ("prefill", "decode"):
            *_, engines = objects.get(f"NetworkPolicy/demo-{prefix}{role}")["spec"]["ingress"]
            peers = [peer["podSelector"]["matchExpressions"][0]["values"] for peer in engines["from"]]
            assert peers == wanted


def test_the_overlay_spreads_both_roles(render: Render) -> None:
    objects = render(LLMD, WIDE)
    assert [name for name in objects.ids if name.startswith("LeaderWorkerSet/")] == [
        "LeaderWorkerSet/demo-llmd-decode",
        "LeaderWorkerSet/demo-llmd-prefill",
    ]
    assert objects.warnings == ()
    limits = [container["resources"]["limits"] for container in engines(objects)]
    assert {(item["nvidia.com/gpu"], item["rdma/ib"]) for item in limits} == {("8", "8")}


ROLES: dict[str, dict[str, Any]] = {
    "spanning": SPANNING,
    "internal": ranks(16, 2),
    "hybrid": ranks(16, 2, "hybrid"),
    "external, one a pod": ranks(2, 2, "external", tensor=8),
    "external": ranks(16, 2, "external"),
    "external in one pod": ranks(8, 1, "external"),
}
SINCE = {"spanning": "0.11.1", "external": "0.22.0", "external in one pod": "0.22.0"}


def releases(first: str) -> list[str]:
    """The releases of the catalogue from one on."""
    known = catalogue.versions()
    return list(known[known.index(first) :])


@pytest.mark.parametrize("name", ROLES)
def test_every_release_knows_the_flags_of_ranks_from_when_the_chart_gives_them(
    render: Render, name: str
) -> None:
    objects = render(LLMD, values=llmd(decode=ROLES[name]))
    given = {item.partition("=")[0] for container in engines(objects) for item in flags(container["args"])}
    for version in releases(SINCE.get(name, "0.11.1")):
        known = {option for flag in catalogue.load(version).flags.values() for option in flag.options}
        assert given - known == set(), version


@pytest.mark.parametrize("name", ROLES)
def test_the_release_before_is_refused_with_the_first_that_can(render: Render, name: str) -> None:
    first = SINCE.get(name, "0.11.1")
    before = catalogue.versions()[catalogue.versions().index(first) - 1]
    message = render.error(LLMD, values={**vllm(version=before), **llmd(decode=ROLES[name])})
    assert f"({first} " in message


PODS = "leaderWorkerSet"
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "several pods of a Deployment": (
        PHASE1,
        base({"parallelism": {"tensor": 2, "nodes": 2}}),
        "base.parallelism.nodes: 2, but a replica of a Deployment is one pod; set base.workload to leaderWorkerSet",
    ),
    "a group of one": (
        PHASE1,
        base({"workload": PODS}),
        "base.workload: leaderWorkerSet, but base.parallelism.nodes is 1; set 2 or more pods, or the workload deployment",
    ),
    "a release without --nnodes": (
        PHASE1,
        {**vllm(version="0.11.0"), **base(SPANNING)},
        "base.parallelism.nodes: vLLM 0.11.0 spans pods only by way of Ray, which these charts do not start (0.11.1 needs"
        " none); set 1 or a newer global.vllm.version",
    ),
    "a topology of no group": (
        PHASE1,
        base({}, group={"exclusiveTopology": "rack"}),
        "base.group.exclusiveTopology: rack holds for the workload leaderWorkerSet only; leave it empty, or use"
        " base.scheduling",
    ),
    "Ray": (
        PHASE1,
        base(SPANNING, args={"distributed-executor-backend": "ray"}),
        "base.args.distributed-executor-backend: ray, but pods of a LeaderWorkerSet are joined by processes of their own;"
        " take it out",
    ),
    "ranks that do not come out even": (
        PHASE1,
        base({"workload": PODS, "parallelism": {"tensor": 8, "nodes": 3}}),
        "base.parallelism.nodes: 3 pods cannot share 8 ranks (tensor times pipeline) equally; set a number that divides"
        " them",
    ),
    "data-parallel ranks that do not come out even": (
        PHASE1,
        base(ranks(3, 2)),
        "base.parallelism.data: 2 pods cannot share 3 data-parallel ranks equally; set a multiple of"
        " base.parallelism.nodes",
    ),
    "a dense model over pods": (
        PHASE1,
        base({"workload": PODS, "parallelism": {"data": 4, "nodes": 2}}),
        "base.parallelism.data: ranks of a dense model have nothing to tell each other across pods; raise base.replicas"
        " instead, or set base.parallelism.expert to true for a mixture of experts",
    ),
    "an exchange without experts": (
        PHASE1,
        base({"parallelism": {"data": 2, "all2all": "pplx"}}),
        "base.parallelism.all2all: pplx does nothing without experts on ranks of their own; set base.parallelism.expert to"
        " true, or leave it empty",
    ),
    "an exchange that the release does not know": (
        PHASE1,
        {**vllm(version="0.14.0"), **base(ranks(2, 1, all2all="nixl_ep"))},
        "base.parallelism.all2all: vLLM 0.14.0 has no nixl_ep; set one of allgather_reducescatter, deepep_high_throughput,"
        " deepep_low_latency, flashinfer_all2allv, naive, pplx",
    ),
    "an exchange before there was a choice": (
        PHASE1,
        {**vllm(version="0.11.0"), **base(ranks(2, 1, all2all="naive"))},
        "base.parallelism.all2all: vLLM 0.11.0 has no --all2all-backend (0.11.1 has); leave it empty",
    ),
    "balancing of one rank": (
        PHASE1,
        base({"parallelism": {"loadBalancing": "hybrid"}}),
        "base.parallelism.loadBalancing: hybrid, but base.parallelism.data is 1; set internal, or several ranks",
    ),
    "external ranks of a dense model": (
        LLMD,
        llmd(decode={"parallelism": {"data": 2, "loadBalancing": "external"}}),
        "llmd.decode.parallelism.loadBalancing: external is for ranks that share the experts of a model; raise"
        " llmd.decode.replicas instead, or set llmd.decode.parallelism.expert to true",
    ),
    "hybrid in one pod": (
        PHASE1,
        base(ranks(2, 1, "hybrid")),
        "base.parallelism.loadBalancing: hybrid has one API server a pod, and the replica is one pod; set internal, which"
        " is the same",
    ),
    "hybrid with one rank a pod": (
        PHASE1,
        base(ranks(2, 2, "hybrid")),
        "base.parallelism.loadBalancing: hybrid chooses among the ranks of a pod, and each has one; set external, which is"
        " the same",
    ),
    "ports that a Service does not know": (
        PHASE1,
        base(ranks(2, 1, "external")),
        "base.parallelism.loadBalancing: external has 2 ports in a pod, of which this layer finds the first only; set"
        " internal or hybrid, or use the layer llmd",
    ),
    "more ports than a pool has": (
        LLMD,
        llmd(decode=ranks(16, 1, "external")),
        "llmd.decode.parallelism.loadBalancing: external has 16 ports in a pod, and a pool knows 8 at most; set more"
        " llmd.decode.parallelism.nodes",
    ),
    "a release without a supervisor": (
        LLMD,
        {**vllm(version="0.21.0"), **llmd(decode=ranks(2, 1, "external"))},
        "llmd.decode.parallelism.loadBalancing: vLLM 0.21.0 cannot serve each rank of a pod on a port of its own (0.22.0"
        " can); set internal or hybrid, or a newer global.vllm.version",
    ),
    "ports beyond the last": (
        LLMD,
        llmd(decode={**ranks(2, 1, "external"), "port": 65535}),
        "llmd.decode.port: 65535 leaves no room for 2 ports; set a lower one",
    ),
    "the supervisor's port": (
        LLMD,
        llmd(decode={**ranks(2, 1, "external"), "port": 9255}),
        "llmd.decode.port: the ports 9255 to 9256 of the ranks meet 9256, where their supervisor listens; set another",
    ),
    "NIXL's ports and the ranks'": (
        LLMD,
        {
            **vllm(kvTransfer={"nixl": {"sideChannelPort": 8201}}),
            **llmd(decode=ranks(4, 1, "external")),
        },
        "global.vllm.kvTransfer.nixl.sideChannelPort: the ports 8201 to 8204 meet 8201 of llmd.decode.port; choose others",
    ),
    "NIXL's ports and the sidecar's": (
        LLMD,
        {
            **vllm(kvTransfer={"nixl": {"sideChannelPort": 8002}}),
            **llmd(decode=ranks(4, 1, "external")),
        },
        "global.vllm.kvTransfer.nixl.sideChannelPort: the ports 8002 to 8005 meet those of the sidecar from 8000; choose"
        " others",
    ),
    "the sidecar's ports and the engine's": (
        LLMD,
        llmd(decode={**ranks(4, 1, "external"), "port": 8003}),
        "llmd.decode.port: 8003 is the sidecar's, which listens on 4 ports from that of prefill; set another, such as 8200",
    ),
    "ranks in the sidecar's own flags": (
        LLMD,
        llmd(routingSidecar={"args": {"data-parallel-size": 2}}),
        "llmd.routingSidecar.args.data-parallel-size: set llmd.decode.parallelism.data instead, which renders this flag",
    ),
    "a group that cannot be recreated as a whole": (
        PHASE1,
        base(SPANNING, rollout={"strategy": "Recreate"}),
        "base.rollout.strategy: Recreate, but a LeaderWorkerSet can only roll; set RollingUpdate",
    ),
    "p2pNccl over pods": (
        NCCL,
        {
            **vllm(version="0.23.0", kvTransfer={"connector": "p2pNccl"}),
            "pdNccl": {"prefill": SPANNING, "decode": {"parallelism": {"tensor": 16}}},
        },
        "pdNccl.prefill.parallelism.nodes: p2pNccl looks for every rank at the address of the first pod; set 1, or the"
        " connector nixl",
    ),
    "Mooncake's prefill over pods": (
        LLMD,
        {**vllm(kvTransfer={"connector": "mooncake"}), **llmd(prefill=ranks(4, 2, "hybrid"))},
        "llmd.prefill.parallelism.nodes: with mooncake, a prefill replica of several pods has its bootstrap server on some"
        " of them only; set 1, or the connector nixl",
    ),
    "Mooncake's prefill with a server for each rank": (
        LLMD,
        {**vllm(kvTransfer={"connector": "mooncake"}), **llmd(prefill=ranks(4, 1, "external"))},
        "llmd.prefill.parallelism.loadBalancing: with mooncake, each server of a pod would open its bootstrap server on the"
        " same port; set internal, or the connector nixl",
    ),
    "a flag that a value renders": (
        PHASE1,
        base({}, args={"enable-expert-parallel": True}),
        "base.args.enable-expert-parallel: set base.parallelism.expert instead, which renders this flag",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_refused(render: Render, name: str) -> None:
    file, values, message = REFUSED[name]
    heading, *messages = render.error(file, values=values).strip().splitlines()
    assert heading == "These values cannot work:"
    assert [item.removeprefix("- ") for item in messages] == [message]
