"""What the templates refuse: every message says where, what was given and what to set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Render

PHASE1 = "values/phase1.yaml"


def refused(render: Render, values: dict[str, Any], **options: Any) -> list[str]:
    """The messages, one a line, without the heading."""
    heading, *messages = render.error(PHASE1, values=values, **options).strip().splitlines()
    assert heading == "These values cannot work:"
    return [message.removeprefix("- ") for message in messages]


def vllm(**values: Any) -> dict[str, Any]:
    return {"global": {"vllm": values}}


def base(**values: Any) -> dict[str, Any]:
    return {"base": values}


CASES: list[tuple[dict[str, Any], str]] = [
    (
        vllm(version="0.10.2"),
        "global.vllm.version: 0.10.2 is older than 0.11.0, the first release whose flags these charts know",
    ),
    (
        vllm(version="0.12.0", accelerator="amd"),
        "global.vllm.image.repository: vLLM 0.12.0 has no official image for amd (the first is 0.14.0); set your own"
        " repository or a newer global.vllm.version",
    ),
    (
        vllm(args={"tensor-parallel-size": 2}),
        "global.vllm.args.tensor-parallel-size: set base.parallelism.tensor instead, which renders this flag",
    ),
    (
        base(args={"tensor_parallel_size": 2}),
        "base.args.tensor_parallel_size: set base.parallelism.tensor instead, which renders this flag",
    ),
    (
        base(args={"no-enable-lora": True}),
        "base.args.no-enable-lora: set global.vllm.lora.modules instead, which renders this flag",
    ),
    (
        vllm(args={"api-key": "secret"}),
        "global.vllm.args.api-key: set global.vllm.auth.apiKeySecret instead, which renders this flag",
    ),
    (
        vllm(env={"HF_TOKEN": "hf_secret"}),
        "global.vllm.env.HF_TOKEN: set global.vllm.huggingface.tokenSecret instead, so that the token stays in a Secret",
    ),
    (
        base(env={"VLLM_PORT": 8000}),
        "base.env.VLLM_PORT: vLLM reads it as the base of its internal ports; for the HTTP port set base.port",
    ),
    (
        vllm(huggingface={"offline": True}),
        "global.vllm.huggingface.offline: the cache of type emptyDir starts empty, so the model cannot be found;"
        " set base.cache.type to pvc, or another global.vllm.model.source.type",
    ),
    (
        vllm(model={"revision": "main", "source": {"type": "hostPath", "hostPath": {"path": "/m"}}}),
        'global.vllm.model.revision: "main" names a revision of the hub, but the source is hostPath; leave it empty',
    ),
    (
        vllm(security={"assignedUid": True, "runAsUser": 1000}),
        "global.vllm.security.runAsUser: 1000 given although assignedUid leaves the user to the platform; set one of"
        " them",
    ),
    (
        base(resources={"extended": {"nvidia.com/gpu": 2}}),
        "base.resources.extended: nvidia.com/gpu is derived from base.parallelism; take it out",
    ),
    (
        {**vllm(accelerator="cpu"), **base(resources={"gpuResource": "nvidia.com/gpu"})},
        "base.resources.gpuResource: nvidia.com/gpu given although global.vllm.accelerator is cpu; leave it empty",
    ),
    (
        base(shm={"mode": "always", "size": "32Gi"}),
        "base.shm.size: 32Gi does not fit into the memory limit 32Gi, against which it counts; set a larger"
        " base.resources.limits.memory or a smaller shm.size",
    ),
    (
        base(resources={"requests": {"memory": "33Gi"}}),
        "base.resources.requests.memory: 33Gi is more than the limit 32Gi",
    ),
    (
        base(replicas=3, cache={"type": "pvc"}),
        "base.cache.accessMode: ReadWriteOnce serves one node, but 3 pods would share the claim; set ReadWriteMany,"
        " or base.cache.type to ephemeral",
    ),
    (
        base(cache={"type": "pvc", "accessMode": "ReadWriteOncePod"}, rollout={"maxSurge": 1}),
        "base.cache.accessMode: ReadWriteOncePod serves one pod, but a rollout with maxSurge 1 would share the claim;"
        " set ReadWriteMany, or base.cache.type to ephemeral",
    ),
    (
        base(cache={"type": "pvc"}, autoscaling={"type": "keda"}),
        "base.cache.accessMode: ReadWriteOnce serves one node, but 4 pods would share the claim; set ReadWriteMany,"
        " or base.cache.type to ephemeral",
    ),
    (
        base(extraVolumes=[{"name": "cache", "emptyDir": {}}]),
        "base.extraVolumes: the name cache belongs to a volume of the chart; choose another",
    ),
    (
        base(rollout={"maxUnavailable": 0}),
        "base.rollout: maxSurge and maxUnavailable are both 0, so no pod could ever be replaced; set one of them",
    ),
    (
        base(rollout={"maxSurge": "0%", "maxUnavailable": "0%"}),
        "base.rollout: maxSurge and maxUnavailable are both 0, so no pod could ever be replaced; set one of them",
    ),
    (
        base(autoscaling={"type": "hpa", "minReplicas": 5}),
        "base.autoscaling.minReplicas: 5 is more than maxReplicas 4",
    ),
]


@pytest.mark.parametrize(("values", "message"), CASES, ids=[message.split(":")[0] for _, message in CASES])
def test_one_mistake_gives_one_message(render: Render, values: dict[str, Any], message: str) -> None:
    assert refused(render, values) == [message]


def test_all_mistakes_are_told_at_once(render: Render) -> None:
    values = base(
        rollout={"maxUnavailable": 0}, extraVolumes=[{"name": "tls", "emptyDir": {}}], env={"POD_IP": "x"}
    )
    assert [message.split(":")[0] for message in refused(render, values)] == [
        "base.env.POD_IP",
        "base.extraVolumes",
        "base.rollout",
    ]


def test_image_volumes_need_a_cluster_that_mounts_them(render: Render) -> None:
    values = vllm(model={"source": {"type": "oci", "oci": {"reference": "registry.example.com/m:1"}}})
    assert refused(render, values, kube_version="1.32.0") == [
        "global.vllm.model.source.type: oci needs image volumes, which Kubernetes v1.32.0 does not mount by default"
        " (1.33 does); set hf, pvc or hostPath"
    ]


def test_hard_rules_hold_without_the_schema(render: Render) -> None:
    """`--skip-schema-validation` exists, so the schema may not be the only guard."""
    assert refused(render, vllm(version="latest"), skip_schema=True)[0] == (
        'global.vllm.version: "latest" is not a vLLM release; set three numbers such as "0.33.0"'
    )
    assert refused(render, vllm(model={"source": {"type": "pvc"}}), skip_schema=True) == [
        "global.vllm.model.source.pvc.claimName: empty; set the claim that holds the model"
    ]
    assert refused(render, base(autoscaling={"type": "hpa", "minReplicas": 0}), skip_schema=True) == [
        "base.autoscaling.minReplicas: 0 is for keda only; set 1 or more, or base.autoscaling.type to keda"
    ]


def test_the_front_door_needs_its_layer(render: Render) -> None:
    assert refused(render, base(enabled=False)) == [
        "frontDoor.to: the layer base is not enabled; set base.enabled to true, or frontDoor.to to a layer that runs"
    ]


def test_paths_of_a_chart_installed_alone_have_no_prefix(render: Render) -> None:
    message = render.error(chart="charts/vllm-base", values={"rollout": {"maxUnavailable": 0}})
    assert "- rollout: maxSurge and maxUnavailable are both 0" in message
