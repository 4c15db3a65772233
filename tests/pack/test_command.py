"""`vllm-phases pack`, from what the user gives to what is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from .conftest import decode, deployment, prefill

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Outcome

    Pack = Callable[..., Outcome]

SIX = "nodes: [{name: gpu, gpu: h100-80, cards: 6}]"
PICTURE = """\
10 of 10 pods placed on 6 of 6 cards, 1 node

gpu  6 x NVIDIA H100 80GB HBM3, 81559 MiB
  0-1 │b███████████████████████████████████████│ 81559 MiB, exclusive
  2-5 │a██████████████████a██████████████████··│ 78000 MiB, 2 of 10 slots

a ██ Deployment/chat-decode   8 of 8 placed  1 x 39000 MiB
b ██ Deployment/chat-prefill  2 of 2 placed  1 x whole card
"""
WITHOUT_BINPACK = """\
6 of 8 pods placed on 6 of 6 cards, 1 node

gpu  6 x NVIDIA H100 80GB HBM3, 81559 MiB
  0-5 │a██████████████████·····················│ 39000 MiB

a ██ Deployment/chat-decode   6 of 6 placed  1 x 39000 MiB
b ██ Deployment/chat-prefill  0 of 2 placed  1 x whole card

Pending: 2 of Deployment/chat-prefill (chat-prefill-0, chat-prefill-1)
  1 node: 6/6 CardInsufficientMemory
  CardInsufficientMemory: less memory is left on the card than the pod asks for. Set a smaller \
nvidia.com/gpumem or nvidia.com/gpumem-percentage, fewer replicas, or more cards.

note: with hami.io/gpu-scheduler-policy: binpack on the pods of Deployment/chat-decode, 2 fewer would stay Pending

note: the order matters: when Deployment/chat-prefill, then Deployment/chat-decode come, no pod would stay Pending
"""


def nodes(text: str) -> str:
    Path("nodes.yaml").write_text(text)
    return "nodes.yaml"


def test_two_decode_pods_a_card_and_prefill_alone(pack: Pack) -> None:
    done = pack("--nodes", nodes(SIX), objects=[decode(), prefill()])
    assert (done.code, done.err) == (0, "")
    assert done.out == PICTURE


def test_without_binpack_decode_takes_every_card(pack: Pack) -> None:
    done = pack("--nodes", nodes(SIX), objects=[decode(6, policy=""), prefill()])
    assert (done.code, done.out) == (1, WITHOUT_BINPACK)


def test_a_thousand_nodes_are_one_line(pack: Pack) -> None:
    done = pack("--nodes", "1000", objects=[decode(4)])
    assert "node-001 … node-999 (999 alike)" in done.out
    assert done.out.count("\n") < 15


def test_json(pack: Pack) -> None:
    done = pack("--nodes", "1", "--format", "json", objects=[decode(1)])
    found = json.loads(done.out)
    card = {"card": 7, "id": "GPU-7", "memory": 39000, "cores": 0}
    pod = {"pod": "chat-decode-0", "workload": "Deployment/chat-decode", "node": "node-0"}
    assert found["placed"] == [{**pod, "containers": [[card]]}]
    assert found["nodes"][0]["cards"][7]["taken"] == {"memory": 39000, "cores": 0, "slots": 1}
    assert (found["pending"], found["notes"]) == ([], [])


def test_svg(pack: Pack) -> None:
    done = pack("--nodes", "2", "--svg", "a.svg", objects=[decode(), prefill(40)])
    assert done.code == 1
    root = ElementTree.parse("a.svg").getroot()
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words[0] == "20 of 48 pods placed on 2 nodes"
    assert "Pending: 28 of Deployment/chat-prefill" in words


def test_whole_gpus_without_hami(pack: Pack) -> None:
    release = [deployment("server", 3, {"nvidia.com/gpu": 4}, schedulerName="default-scheduler")]
    done = pack("--nodes", "1", objects=release)
    assert done.code == 1
    assert "0-7 │a" in done.out
    assert "1 node: Insufficient nvidia.com/gpu" in done.out


def test_mig_instances_are_counted(pack: Pack) -> None:
    release = [deployment("server", 2, {"nvidia.com/mig-3g.40gb": 1}, schedulerName="default-scheduler")]
    shape = "nodes: [{scheduler: default, cards: 0, resources: {nvidia.com/mig-3g.40gb: 2}}]"
    done = pack("--nodes", nodes(shape), objects=release)
    assert done.code == 0
    assert "mig-3g.40gb 0-1 │a" in done.out


def test_slices_want_hami(pack: Pack) -> None:
    release = [deployment("server", 1, {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 100}, schedulerName="")]
    done = pack("--nodes", nodes("nodes: [{scheduler: default}]"), objects=release)
    assert done.code == 1
    assert "Insufficient nvidia.com/gpumem: no node offers it without HAMi." in done.out


def test_a_memory_with_a_unit_is_told(pack: Pack) -> None:
    release = [deployment("server", 1, {"nvidia.com/gpu": 1, "nvidia.com/gpumem": "40Gi"})]
    done = pack("--nodes", "1", objects=release)
    assert done.code == 1
    assert "HAMi cannot read the request" in done.out


def test_groups_of_a_leader_worker_set(pack: Pack) -> None:
    pod = decode()["spec"]["template"]
    template = {"size": 3, "leaderTemplate": pod, "workerTemplate": pod}
    release: list[dict[str, Any]] = [
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": "group"},
            "spec": {"replicas": 2, "leaderWorkerTemplate": template},
        }
    ]
    done = pack("--nodes", "1", "--format", "json", objects=release)
    assert [one["pod"] for one in json.loads(done.out)["placed"]] == [
        "group-0", "group-0-1", "group-0-2", "group-1", "group-1-1", "group-1-2",
    ]  # fmt: skip


def test_node_objects(pack: Pack) -> None:
    card = {
        "id": "GPU-a",
        "count": 10,
        "devmem": 81559,
        "devcore": 100,
        "type": "NVIDIA H200",
        "health": True,
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "real", "annotations": {"hami.io/node-nvidia-register": json.dumps([card])}},
    }
    Path("nodes.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}))
    done = pack("--nodes", "nodes.json", objects=[decode(2)])
    assert done.code == 0
    assert "real  1 x NVIDIA H200, 81559 MiB" in done.out


@pytest.mark.parametrize(
    ("words", "text", "message"),
    [
        (("--nodes", "0"), "", "error: --nodes 0: give a number from 1 to 100000, or a file with nodes\n"),
        (("--nodes", "-3"), "", "error: --nodes -3: give a number from 1 to 100000, or a file with nodes\n"),
        (("--nodes", "none.yaml"), "", "error: none.yaml: no such file or folder\n"),
        (("--nodes", "2", "--gpu", "h900"), "", "error: --gpu h900: no such card; known are a100-40, a100-80, b200, h100-80, h200\n"),
        (("--nodes", "nodes.yaml", "--gpu", "h200"), SIX, "error: --gpu h200 goes with a number of nodes; nodes.yaml says it itself\n"),
        (("--nodes", "nodes.yaml"), "nodes: [{cards: -1}]", "error: nodes.yaml:1:10: cards: -1: give a whole number from 0 to 64\n"),
        (("--nodes", "nodes.yaml"), "nodes: [{gpu: h900}]", "error: nodes.yaml:1:10: gpu h900: no such card; known are a100-40, a100-80, b200, h100-80, h200\n"),
        (("--nodes", "nodes.yaml"), "nodes: [{card: 1}]", "error: nodes.yaml:1:10: card: no key of a shape; known are cards, coreScaling, count, gpu, labels, memory, memoryScaling, name, numa, resources, scheduler, slots, type\n"),
        (("--nodes", "nodes.yaml"), "nodes: 3", "error: nodes.yaml:1:1: nodes: must be a list of shapes, such as [{count: 4, gpu: h200}]\n"),
        (("--nodes", "nodes.yaml"), "nodes: [{name: a}, {name: a}]", "error: nodes.yaml: two nodes are called a; give each a name of its own\n"),
        (("--nodes", "nodes.yaml"), "kind: Pod\napiVersion: v1", "error: nodes.yaml: no nodes here; give Node objects (kubectl get nodes -o yaml) or shapes under `nodes:`, such as {nodes: [{count: 4, gpu: h100-80, cards: 8}]}\n"),
        (("-", "--nodes", "-"), "", "error: --nodes -: standard input has the manifests; give the nodes in a file\n"),
        (("--nodes", "."), "", "error: --nodes .: a folder; name one file\n"),
        (("--nodes", "nodes.yaml"), "nodes: [{", "error: nodes.yaml:2:1: is no YAML that can be read: did not find expected node content\n"),
        (("--nodes", "1", "--svg", "no/such/a.svg"), "", "error: --svg no/such/a.svg: cannot be written: No such file or directory\n"),
        (("--nodes", "1", "-f", "a.yaml"), "", "error: give values (-f, --set, --chart) or manifests, not both\n"),
    ],
)  # fmt: skip
def test_what_cannot_be_packed(pack: Pack, words: tuple[str, ...], text: str, message: str) -> None:
    Path("nodes.yaml").write_text(text)
    done = pack(*words, objects=[decode()])
    assert (done.code, done.out, done.err) == (2, "", message)


def test_a_broken_registration(pack: Pack) -> None:
    Path("nodes.yaml").write_text(
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  annotations:\n"
        "    hami.io/node-nvidia-register: 'GPU-1,10,81559,100,NVIDIA,0,true:'\n"
    )
    done = pack("--nodes", "nodes.yaml", objects=[decode()])
    assert (done.code, done.err) == (
        2,
        "error: nodes.yaml:6:5: hami.io/node-nvidia-register: not JSON; HAMi writes a JSON list since 2.8, "
        "and older ones are not read\n",
    )


def test_nothing_wants_a_gpu(pack: Pack) -> None:
    done = pack("--nodes", "1", objects=[deployment("router", 1, {})])
    assert (done.code, done.err) == (3, "nothing to pack: no pod here wants a GPU\n")
