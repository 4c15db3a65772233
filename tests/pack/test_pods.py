"""Which pods come, who schedules them, and what is told of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from vllm_phases.model import Document, Release
from vllm_phases.packing.pods import in_helm_order

from .conftest import decode, deployment, prefill

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Outcome

    Pack = Callable[..., Outcome]

GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
HAMI_NODE = "nodes: [{name: gpu, cards: 2, scheduler: hami}]"


def taken(pack: Pack, *objects: dict[str, Any], words: tuple[str, ...] = (), nodes: str = HAMI_NODE) -> Any:
    """The cards of the first container of each placed pod: [card, MiB, cores]."""
    Path("nodes.yaml").write_text(nodes)
    done = pack("--nodes", "nodes.yaml", "--format", "json", *words, objects=list(objects))
    placed = json.loads(done.out)["placed"]
    return [
        [[got["card"], got["memory"], got["cores"]] for got in next(filter(None, one["containers"]))]
        for one in placed
    ]


@pytest.mark.parametrize(
    ("limits", "got"),
    [
        ({GPU: 1}, [1, 81559, 100]),
        ({MEMORY: 500}, [1, 500, 0]),
        ({GPU: 1, MEMORY: 500}, [1, 500, 0]),
        ({GPU: 1, "nvidia.com/gpumem-percentage": 100}, [1, 81559, 100]),
        ({GPU: 1, "nvidia.com/gpumem-percentage": 50}, [1, 40779, 0]),
        ({GPU: 1, CORES: 30}, [1, 81559, 30]),
    ],
)
def test_the_webhook_completes_a_request(pack: Pack, limits: dict[str, int], got: list[int]) -> None:
    assert taken(pack, deployment("one", 1, limits, schedulerName="")) == [[got]]


def test_without_the_webhook_a_whole_card_is_not_exclusive(pack: Pack) -> None:
    assert taken(pack, deployment("one", 1, {GPU: 1}), words=("--no-webhook",)) == [[[1, 81559, 0]]]


def test_a_pod_that_the_webhook_ignores_finds_no_plain_node(pack: Pack) -> None:
    Path("nodes.yaml").write_text(HAMI_NODE)
    ignored = deployment("one", 1, {GPU: 1}, schedulerName="", labels={"hami.io/webhook": "ignore"})
    done = pack("--nodes", "nodes.yaml", objects=[ignored])
    assert (done.code, "1 node: Insufficient nvidia.com/gpu" in done.out) == (1, True)


def test_a_privileged_pod_is_refused(pack: Pack) -> None:
    one = decode(1)
    one["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    done = pack("--nodes", "1", objects=[one])
    assert (done.code, "refuses privileged containers" in done.out) == (1, True)


def test_wrong_weights_are_told(pack: Pack) -> None:
    one = deployment("one", 1, {GPU: 1}, annotations={"hami.io/device-scoring-weights": "slot=1"})
    done = pack("--nodes", "1", objects=[one])
    assert (
        "hami.io/device-scoring-weights: slot=1: write slot=1,core=1,memory=1, not all of them 0" in done.out
    )


def test_a_node_is_selected_by_its_labels(pack: Pack) -> None:
    nodes = "nodes: [{name: a, labels: {pool: left}}, {name: b, labels: {pool: right}}]"
    Path("nodes.yaml").write_text(nodes)
    one = deployment("one", 1, {GPU: 1}, nodeSelector={"pool": "right"})
    done = pack("--nodes", "nodes.yaml", "--format", "json", objects=[one])
    assert json.loads(done.out)["placed"][0]["node"] == "b"
    lost = deployment("one", 1, {GPU: 1}, nodeSelector={"pool": "z"})
    done = pack("--nodes", "nodes.yaml", objects=[lost])
    assert "2 nodes: node(s) didn't match Pod's node affinity/selector" in done.out


def test_a_closed_node_takes_nobody(pack: Pack) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "spec": {"unschedulable": True}}
    Path("nodes.yaml").write_text(json.dumps(node))
    done = pack("--nodes", "nodes.yaml", objects=[decode(1)])
    assert "1 node: node(s) were unschedulable" in done.out


def test_a_node_that_hami_does_not_know(pack: Pack) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    Path("nodes.yaml").write_text(json.dumps(node))
    done = pack("--nodes", "nodes.yaml", objects=[decode(1)])
    assert "node unregistered: HAMi knows no card of the node. Set the label gpu=on on the node" in done.out


def test_the_scheduler_may_have_other_policies(pack: Pack) -> None:
    two = decode(2, policy="")
    assert [one[0][0] for one in taken(pack, two)] == [1, 0]
    assert [one[0][0] for one in taken(pack, two, words=("--gpu-policy", "binpack"))] == [1, 1]


def test_what_is_not_simulated_is_told(pack: Pack) -> None:
    affinity = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}
    }
    constraint = [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    one = deployment("one", 1, {GPU: 1}, affinity=affinity, topologySpreadConstraints=constraint)
    done = pack("--nodes", "1", objects=[one])
    assert done.out.endswith(
        "note: Deployment/one has required podAntiAffinity and topologySpreadConstraints, which are not simulated\n"
    )


def test_the_order_of_manifests_is_kept(pack: Pack) -> None:
    assert [one[0][2] for one in taken(pack, prefill(1), decode(1))] == [100, 0]
    assert [one[0][2] for one in taken(pack, decode(1), prefill(1))] == [0, 100]


def test_no_color(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in pack("--nodes", "1", objects=[decode(1)]).out


def test_a_statefulset_a_job_and_a_pod(pack: Pack) -> None:
    template = decode()["spec"]["template"]
    stateful = {**decode(2), "kind": "StatefulSet"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job"},
        "spec": {"template": template},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": template["spec"]}
    assert len(taken(pack, stateful, job, pod)) == 4


def running(name: str, annotations: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations}, **more}


def test_pods_that_run_already_take_their_part(pack: Pack) -> None:
    card = {
        "id": "GPU-a",
        "count": 10,
        "devmem": 81559,
        "devcore": 100,
        "type": "NVIDIA H100",
        "health": True,
    }
    registered = {"hami.io/node-nvidia-register": json.dumps([card, {**card, "id": "GPU-b", "index": 1}])}
    hami = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "hami", "annotations": registered}}
    room = {"allocatable": {GPU: "2"}}
    plain = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "plain"}, "status": room}
    on_b = {"hami.io/vgpu-node": "hami", "hami.io/vgpu-devices-allocated": "GPU-b,NVIDIA,60000,0:;"}
    spec = {"nodeName": "plain", "containers": [{"name": "a", "resources": {"limits": {GPU: 1}}}]}
    items = [
        hami,
        plain,
        running("one", on_b),
        running("gone", on_b, status={"phase": "Succeeded"}),
        running("two", {}, spec=spec),
        running("elsewhere", {}, spec={**spec, "nodeName": "other"}),
    ]
    Path("nodes.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    whole = deployment("whole", 2, {GPU: 1}, schedulerName="other")
    done = pack("--nodes", "nodes.json", "--format", "json", objects=[decode(2), whole])
    found = json.loads(done.out)
    assert [one["pod"] for one in found["running"]] == ["one", "two"]
    assert [one["node"] for one in found["placed"]] == ["hami", "hami", "plain"]
    assert {got["id"] for one in found["placed"][:2] for got in one["containers"][0]} == {"GPU-a"}
    assert found["pending"][0]["pods"] == ["whole-1"]


def test_an_allocation_that_is_none(pack: Pack) -> None:
    card = {
        "id": "GPU-a",
        "count": 10,
        "devmem": 81559,
        "devcore": 100,
        "type": "NVIDIA H100",
        "health": True,
    }
    registered = {"hami.io/node-nvidia-register": json.dumps([card])}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "annotations": registered}}
    odd = running("one", {"hami.io/vgpu-node": "a", "hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,many:;"})
    Path("nodes.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, odd]}))
    done = pack("--nodes", "nodes.json", objects=[decode(1)])
    assert done.code == 2
    assert done.err.startswith("error: nodes.json:1:")
    assert "hami.io/vgpu-devices-allocated: not what HAMi writes: GPU-a,NVIDIA,many:;" in done.err


def test_init_containers_without_a_gpu_are_told(pack: Pack) -> None:
    init = [{"name": "wait", "image": "busybox"}]
    told = "note: HAMi 2.10 forgets what the pods of Deployment/one take once their init containers are done"
    done = pack("--nodes", "1", objects=[deployment("one", 1, {GPU: 1}, initContainers=init)])
    assert told in done.out
    sidecar = [*init, {"name": "proxy", "image": "envoy", "restartPolicy": "Always"}]
    done = pack("--nodes", "1", objects=[deployment("one", 1, {GPU: 1}, initContainers=sidecar)])
    assert told not in done.out


def test_helm_creates_deployments_before_stateful_sets_and_kinds_it_does_not_know_last() -> None:
    kinds = ("LeaderWorkerSet", "StatefulSet", "Deployment", "Deployment", "Pod")
    trees = [
        {**decode(), "kind": kind, "metadata": {"name": f"n{place}"}} for place, kind in enumerate(kinds)
    ]
    release = Release(tuple(Document("a.yaml", "kubernetes", tree) for tree in trees))
    assert [pod.name for pod in in_helm_order(release.pods)] == ["n4", "n2", "n3", "n1", "n0"]
