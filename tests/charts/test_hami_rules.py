"""What goes wrong when engines share GPUs by HAMi or its alternatives, rule by rule, and where it is caught.

A row is impossible in what the chart renders, refused by schema or templates, or found by the linter in a release whose
open values break it, and in configurations of others. Rows are numbered as in the list that the charts were made from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from vllm_phases import rules
from vllm_phases.model import Document, Release
from vllm_phases.node_config import Share, configs

from tests.charts.containers import engine, pod
from tests.charts.test_hami_modes import NAME, environment, flags, gpus, has_shm, pod_annotations

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Objects, Render

ROWS = range(1, 36)
PHASE = "values/phase3.yaml"
PREFILL = "demo-llmd-prefill"
LATEST = "1.36.0"


def slices(**values: Any) -> dict[str, Any]:
    return {"hamiDecode": values}


def sharing(**values: Any) -> dict[str, Any]:
    return slices(sharing=values)


def vllm(**values: Any) -> dict[str, Any]:
    return {"global": {"vllm": values}}


def merged(*trees: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for tree in trees:
        for key, value in tree.items():
            both = isinstance(value, dict) and isinstance(found.get(key), dict)
            found[key] = merged(found[key], value) if both else value
    return found


NO_HAMI = vllm(hami={"enabled": False})
MIG = merged(NO_HAMI, sharing(mode="mig"))
MPS = merged(NO_HAMI, sharing(mode="mps", kvCacheMiB=14000))
TIME = merged(NO_HAMI, sharing(mode="time-slicing", kvCacheMiB=14000))
SHARED_CLAIM = merged(NO_HAMI, sharing(mode="dra", claim="timeSlicing", kvCacheMiB=14000))

# The releases in which a relation must hold.
SETTINGS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "whole and sliced decode": {"llmd": {"decode": {"replicas": 2}}},
    "three a card": sharing(replicasPerGpu=3),
    "an explicit size": sharing(memoryMiB=40000),
    "cores": sharing(cores=50),
    "labels and annotations that lie": slices(
        labels={"hami.io/webhook": "ignore"}, annotations={"hami.io/gpu-scheduler-policy": "binpack,numa"}
    ),
    "two cards an engine": slices(parallelism={"tensor": 2}),
    "MIG by HAMi": sharing(mode="hami-mig"),
}


def is_packed(objects: Objects) -> None:
    assert pod_annotations(objects)["hami.io/gpu-scheduler-policy"].startswith("binpack")
    assert pod_annotations(objects)["hami.io/node-scheduler-policy"] == "binpack"


def is_alone_on_its_cards(objects: Objects) -> None:
    assert gpus(objects, PREFILL)["nvidia.com/gpucores"] == "100"


def names_the_scheduler(objects: Objects) -> None:
    for name in (NAME, PREFILL):
        assert pod(objects, name)["schedulerName"] == "hami-scheduler"


def gives_memory_once(objects: Objects) -> None:
    assert "nvidia.com/gpumem-percentage" not in gpus(objects)
    assert int(gpus(objects)["nvidia.com/gpumem"]) > 0


def is_not_slowed_down(objects: Objects) -> None:
    if "nvidia.com/gpucores" in gpus(objects):
        assert environment(objects)["GPU_CORE_UTILIZATION_POLICY"] == "disable"


def takes_the_usual_part_of_its_slice(objects: Objects) -> None:
    assert "gpu-memory-utilization" not in flags(objects)


def speaks_without_peer_access(objects: Objects) -> None:
    if gpus(objects)["nvidia.com/gpu"] != "1":
        assert "disable-custom-all-reduce" in flags(objects)
        assert environment(objects)["NCCL_CUMEM_HOST_ENABLE"] == "0"


def keeps_the_isolation(objects: Objects) -> None:
    assert not {"CUDA_DISABLE_CONTROL", "LD_PRELOAD"} & environment(objects).keys()


def has_a_mode_that_exists(objects: Objects) -> None:
    assert pod_annotations(objects).get("nvidia.com/vgpu-mode", "hami-core") in ("hami-core", "mig")


def limits_what_it_requests(objects: Objects) -> None:
    assert gpus(objects)
    assert gpus(objects, PREFILL)


def has_shared_memory(objects: Objects) -> None:
    sliced = "nvidia.com/vgpu-mode" not in pod_annotations(objects)
    assert has_shm(objects) or not sliced


def surges_by_one_at_most(objects: Objects) -> None:
    assert objects.get(f"Deployment/{NAME}")["spec"]["strategy"]["rollingUpdate"]["maxSurge"] in (0, 1)


def needs_no_webhook(objects: Objects) -> None:
    """Whatever the webhook would add stands there already."""
    names_the_scheduler(objects)
    is_alone_on_its_cards(objects)
    gives_memory_once(objects)


def says_it_on_the_pods(objects: Objects) -> None:
    metadata = objects.get(f"Deployment/{NAME}")["metadata"]
    assert not any(name.startswith("hami.io/") for name in metadata.get("annotations", {}))


def gives_no_gpu_to_helpers(objects: Objects) -> None:
    helpers = pod(objects, NAME)["initContainers"]
    assert not any("nvidia.com" in str(each["resources"]) for each in helpers)


CONSTRUCTED: dict[int, Callable[[Objects], None]] = {
    2: gives_memory_once,
    6: is_packed,
    8: is_alone_on_its_cards,
    9: names_the_scheduler,
    12: is_not_slowed_down,
    14: takes_the_usual_part_of_its_slice,
    16: speaks_without_peer_access,
    17: keeps_the_isolation,
    20: has_a_mode_that_exists,
    21: limits_what_it_requests,
    23: has_shared_memory,
    29: surges_by_one_at_most,
    30: needs_no_webhook,
    31: says_it_on_the_pods,
    32: gives_no_gpu_to_helpers,
    35: is_packed,
}


@pytest.fixture(scope="module")
def rendered(render: Render) -> dict[str, Objects]:
    return {name: render(PHASE, values=values) for name, values in SETTINGS.items()}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("number", CONSTRUCTED)
def test_impossible(rendered: dict[str, Objects], number: int, setting: str) -> None:
    CONSTRUCTED[number](rendered[setting])


HELPER = {"name": "h", "image": "registry.example.com/h:1"}
PRIVILEGED = {"securityContext": {"privileged": True}}
PRIVILEGE = (
    "HAMi refuses pods with a privileged container; take securityContext.privileged out (RDMA needs the capability "
    "IPC_LOCK and an rdma resource only)"
)
DERIVED = "what HAMi gives is derived from hamiDecode.sharing; take it out"

# What schema or templates refuse, each with the whole message, or the schema's part of it.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "001 memory with a unit": (sharing(memoryMiB="39000Mi"), "got string, want integer"),
    "001 memory beyond 32 bits": (sharing(memoryMiB=2147483648), "maximum: got 2.147483648"),
    "002 a percentage beside memory": (
        slices(resources={"extended": {"nvidia.com/gpumem-percentage": 50}}),
        f"hamiDecode.resources.extended.nvidia.com/gpumem-percentage: {DERIVED}",
    ),
    "003 a slice without a size": (
        sharing(gpu=""),
        "hamiDecode.sharing.memoryMiB: 0, and without hamiDecode.sharing.gpu it cannot be derived; HAMi would give the "
        "whole card. Set either",
    ),
    "004 slices larger than the card": (
        sharing(memoryMiB=41000),
        "hamiDecode.sharing.memoryMiB: 2 slices of 41000 MiB are more than the 81559 MiB of h100-80; set 39963 or less",
    ),
    "004 a card that nobody knows": (
        merged(MIG, sharing(gpu="h1000")),
        "hamiDecode.sharing.gpu: the catalogue has no memory of h1000; set one of a10, a100-40, a100-80, a30, b200, "
        "b300, h100-80, h100-96, h200, l4, l40, t4, v100, or leave it empty and give hamiDecode.sharing.memoryMiB or "
        "migProfile",
    ),
    "007 a slice of which a third fits": (
        sharing(memoryMiB=20000),
        "hamiDecode.sharing.memoryMiB: of 20000 MiB a card of 81559 holds 4 slices, not 2, because memory alone "
        "decides; set more than 27186, or a larger hamiDecode.sharing.replicasPerGpu",
    ),
    "006 a policy that spreads": (
        slices(annotations={"hami.io/gpu-scheduler-policy": "spread"}),
        "hamiDecode.annotations.hami.io/gpu-scheduler-policy: spread gives each slice a card of its own while there "
        "are idle ones; take it out, or set binpack",
    ),
    "008 prefill that others may join": (
        NO_HAMI,
        "hamiDecode.sharing.mode: hami, but global.vllm.hami.enabled is false, so other engines of the release could "
        "enter the same cards; set it to true",
    ),
    "009 another scheduler": (
        slices(scheduling={"schedulerName": "volcano"}),
        "hamiDecode.scheduling.schedulerName: volcano, but only hami-scheduler knows what is free on a card; leave it "
        "empty, or set global.vllm.hami.schedulerName",
    ),
    "010 a fixed node": (
        slices(extraPodSpec={"nodeName": "gpu-1"}),
        "hamiDecode.extraPodSpec.nodeName: HAMi refuses pods that are bound already; use "
        "hamiDecode.scheduling.nodeSelector",
    ),
    "011 a privileged engine": (
        slices(extraContainerSpec=PRIVILEGED),
        f"hamiDecode.extraContainerSpec: {PRIVILEGE}",
    ),
    "011 a privileged sidecar": (
        slices(extraContainers=[{**HELPER, **PRIVILEGED}]),
        f"hamiDecode.extraContainers: {PRIVILEGE}",
    ),
    "011 a privileged init container": (
        slices(extraInitContainers=[{**HELPER, **PRIVILEGED}]),
        f"hamiDecode.extraInitContainers: {PRIVILEGE}",
    ),
    "012 cores with tensor parallelism": (
        slices(sharing={"cores": 50}, parallelism={"tensor": 2}),
        "hamiDecode.sharing.cores: 50 with tensor parallelism gets stuck in HAMi's limit (HAMi-core issue 142); set 0",
    ),
    "012 more cores than a card has": (
        sharing(cores=60),
        "hamiDecode.sharing.cores: 2 times 60 is more than a card; set 50 or less",
    ),
    "012 a limit without cores": (
        sharing(throttle=True),
        "hamiDecode.sharing.throttle: true, but hamiDecode.sharing.cores is 0, so there is nothing to hold the slice "
        "to; set cores, or false",
    ),
    "013 low priority": (
        slices(resources={"extended": {"nvidia.com/priority": 1}}),
        "hamiDecode.resources.extended.nvidia.com/priority: engines of low priority stand still while another "
        "computes; take it out",
    ),
    "014 a fraction of a time-sliced card": (
        merged(TIME, slices(args={"gpu-memory-utilization": 0.9})),
        "hamiDecode.args.gpu-memory-utilization: set hamiDecode.sharing.replicasPerGpu instead, which renders this flag",
    ),
    "014 engines that measure each other": (
        merged(MPS, sharing(kvCacheMiB=0)),
        "hamiDecode.sharing.kvCacheMiB: 0, but engines that start together on a card measure each other's memory "
        "(vLLM issue 55827); set the size of each one's KV cache",
    ),
    "015 KV that leaves nothing to the weights": (
        merged(MPS, sharing(kvCacheMiB=41000)),
        "hamiDecode.sharing.kvCacheMiB: 2 times 41000 MiB leave nothing of the 81559 MiB of h100-80 to the weights; "
        "set less",
    ),
    "016 tensor parallelism in HAMi 2.8": (
        merged(vllm(hami={"version": "2.8.3"}), slices(parallelism={"tensor": 2})),
        "hamiDecode.parallelism.tensor: 2, but in slices of HAMi 2.8.3 NCCL crashes (HAMi issue 1764); set 1, or "
        "global.vllm.hami.version to 2.9.0 or newer",
    ),
    "016 tensor parallelism of a new engine in HAMi 2.9": (
        merged(vllm(hami={"version": "2.9.0"}), slices(parallelism={"tensor": 2})),
        "hamiDecode.parallelism.tensor: 2, but vLLM 0.33.0 hangs at its start in slices of HAMi 2.9.0 (HAMi-core issue "
        "261); set 1, or global.vllm.hami.version to 2.10.0 or newer",
    ),
    "016 an unknown HAMi": (
        vllm(hami={"version": "2.7.1"}),
        "global.vllm.hami.version: 2.7.1 is older than 2.8.0, the first release of HAMi that these charts know",
    ),
    "016 MIG by an old HAMi": (
        merged(vllm(hami={"version": "2.9.0"}), sharing(mode="hami-mig")),
        "hamiDecode.sharing.mode: HAMi 2.9.0 does not choose MIG profiles by memory (2.10.0 does); set mig or hami, or "
        "a newer global.vllm.hami.version",
    ),
    "016 memory that an old HAMi does not count": (
        merged(vllm(hami={"version": "2.8.3"}), slices(args={"enable-sleep-mode": True})),
        "hamiDecode.args.enable-sleep-mode: HAMi 2.8.3 does not count memory that is allocated this way (2.9.0 does); "
        "take it out",
    ),
    "017 no isolation": (
        slices(env={"CUDA_DISABLE_CONTROL": "true"}),
        "hamiDecode.env.CUDA_DISABLE_CONTROL: it switches off what keeps a slice of HAMi to its memory; take it out",
    ),
    "017 no isolation of any engine": (
        vllm(env={"LD_PRELOAD": "/lib/other.so"}),
        "global.vllm.env.LD_PRELOAD: it switches off what keeps a slice of HAMi to its memory; take it out",
    ),
    "023 shared memory over that of MPS": (
        merged(MPS, slices(shm={"mode": "always"})),
        "hamiDecode.shm.mode: always, but MPS speaks to its clients through a /dev/shm of its own; set auto",
    ),
    "024 a volume over HAMi's library": (
        slices(extraVolumeMounts=[{"name": "scratch", "mountPath": "/usr/local"}]),
        "hamiDecode.extraVolumeMounts: /usr/local would hide /usr/local/vgpu, where HAMi mounts its library; choose "
        "another path",
    ),
    "025 ranks on MIG instances": (
        merged(MIG, slices(parallelism={"tensor": 2})),
        "hamiDecode.parallelism: 2 ranks, but MIG instances cannot speak to each other; set tensor, pipeline and data "
        "to 1",
    ),
    "025 a profile of another card": (
        merged(MIG, sharing(migProfile="3g.71gb")),
        "hamiDecode.sharing.migProfile: h100-80 has no 3g.71gb; set one of 1g.10gb, 1g.20gb, 2g.20gb, 3g.40gb, "
        "4g.40gb, 7g.80gb",
    ),
    "025 more instances than there are": (
        merged(MIG, sharing(migProfile="4g.40gb")),
        "hamiDecode.sharing.replicasPerGpu: 2, but h100-80 holds 1 of 4g.40gb; set that, or a smaller migProfile",
    ),
    "025 a profile that could be two": (
        merged(MIG, sharing(gpu="h100-96")),
        "hamiDecode.sharing.migProfile: empty, and h100-96 has no single profile for 2 replicas; set it",
    ),
    "025 a card without MIG": (
        merged(MIG, sharing(gpu="l40")),
        "hamiDecode.sharing.migProfile: empty, and l40 has no MIG; set it",
    ),
    "025 MIG of one strategy under HAMi": (
        sharing(mode="mig", migStrategy="single"),
        "hamiDecode.sharing.migStrategy: single asks for nvidia.com/gpu, which HAMi takes for its own; set mixed, or "
        "mode hami-mig",
    ),
    "026 several shares for one engine": (
        merged(TIME, slices(parallelism={"tensor": 2})),
        "hamiDecode.parallelism: 2 ranks, but two shares may be of the same card; set tensor, pipeline and data to 1",
    ),
    "026 several cards of MPS": (
        merged(MPS, slices(parallelism={"tensor": 2})),
        "hamiDecode.parallelism: 2 ranks, but MPS gives one card at most; set tensor, pipeline and data to 1",
    ),
    "027 claims of HAMi beside its scheduler": (
        sharing(mode="hami-dra"),
        "global.vllm.hami.enabled: true is for HAMi's scheduler, which may not run beside its DRA driver; set false "
        "for hamiDecode.sharing.mode hami-dra",
    ),
    "027 more pods than the claim's card holds": (
        SHARED_CLAIM,
        "hamiDecode.replicas: 8 pods share the one card of their claim, but hamiDecode.sharing.replicasPerGpu is 2; set "
        "as many at most, or hamiDecode.sharing.claim to mig",
    ),
    "028 HAMi's pods on nodes of another plugin": (
        {"llmd": {"prefill": {"sharing": {"exclusive": False}}}},
        "llmd.prefill.sharing.exclusive: false, so HAMi leaves the pods alone, but nothing keeps them off its nodes, "
        "where its device plugin would refuse them; set llmd.prefill.scheduling.nodeSelector to nodes without it",
    ),
    "029 a large surge": (
        slices(rollout={"maxSurge": 2}),
        "hamiDecode.rollout.maxSurge: 2, but HAMi binds one pod of a node after the other, and those that wait fail; "
        "set 0 or 1",
    ),
    "032 a GPU for an init container": (
        slices(extraInitContainers=[{**HELPER, "resources": {"limits": {"nvidia.com/gpu": 1}}}]),
        "hamiDecode.extraInitContainers: nvidia.com/gpu beside the engine would be counted as another slice; take it "
        "out",
    ),
    "033 several ranks in a slice": (
        slices(parallelism={"data": 2}),
        "hamiDecode.parallelism.data: 2 ranks in one pod would count each other's memory in a shared GPU (HAMi-core "
        "issue 191); set 1, and more hamiDecode.replicas",
    ),
    "0 transfer that nobody has verified": (
        vllm(hami={"acceptUnverifiedTransfer": False}),
        "global.vllm.hami.acceptUnverifiedTransfer: false, and nobody has published a test of KV transfer to a slice "
        "of HAMi on hardware (HAMi issue 1423). Safer are hamiDecode.sharing.mode mig, and fewer replicas with larger "
        "batches on whole GPUs (mode none); set true to try it all the same",
    ),
    "0 a GPU of another maker": (
        vllm(accelerator="amd"),
        "hamiDecode.sharing.mode: hami is for GPUs of NVIDIA, and global.vllm.accelerator is amd; set none",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(render: Render, name: str) -> None:
    values, message = REFUSED[name]
    assert message in render.error(PHASE, values=values, kube_version=LATEST)


@pytest.mark.parametrize(
    ("mode", "floor", "instead"), [("dra", "1.34", "mig, "), ("hami-dra", "1.36", "hami")]
)
def test_027_claims_before_kubernetes_serves_them(
    render: Render, mode: str, floor: str, instead: str
) -> None:
    values = merged(NO_HAMI, sharing(mode=mode))
    before = f"1.{int(floor[2:]) - 1}.0"
    error = render.error(PHASE, values=values, kube_version=before)
    assert (
        f"- hamiDecode.sharing.mode: {mode} needs Kubernetes {floor}, and this is v{before}; set {instead}"
        in error
    )
    assert render(PHASE, values=values, kube_version=f"{floor}.0").ids


PREFERRED = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}
        ]
    }
}
LARGE = vllm(model={"name": "meta-llama/Llama-3.3-70B-Instruct"})

# What a release may still do by its open values, and the rule that finds it.
FOUND: dict[str, tuple[dict[str, Any], str]] = {
    "001 memory with a unit": (
        slices(extraContainerSpec={"resources": {"limits": {"nvidia.com/gpumem": "39Gi"}}}),
        "SHR002",
    ),
    "014 a small part of a small part": (slices(args={"gpu-memory-utilization": 0.45}), "SHR022"),
    "015 a model larger than its slice": (LARGE, "RUN035"),
    "016 tensor parallelism": (slices(parallelism={"tensor": 2}), "SHR017"),
    "012 a limit on compute": (sharing(cores=50, throttle=True), "SHR013"),
    "020 a mode that does not exist": (slices(annotations={"nvidia.com/vgpu-mode": "mps"}), "SHR009"),
    "022 a preference": (slices(scheduling={"affinity": PREFERRED}), "SHR021"),
}


def told(objects: Any) -> set[str]:
    """What the linter finds."""
    documents = tuple(Document(f"{name}.yaml", "kubernetes", tree) for name, tree in objects.items())
    return {finding.rule_id for finding in rules.run(rules.Context(Release(documents), LATEST))}


@pytest.mark.parametrize("name", FOUND)
def test_found_in_a_release(render: Render, name: str) -> None:
    values, rule = FOUND[name]
    assert rule in told(dict(render(PHASE, values=values).by_id))


@pytest.mark.parametrize("setting", [name for name in SETTINGS if name != "two cards an engine"])
def test_nothing_else_is_found_in_what_the_chart_renders(rendered: dict[str, Objects], setting: str) -> None:
    assert told(dict(rendered[setting].by_id)) <= {"SHR019"}


class TestNodes:
    """What no engine can know stands in what `vllm-phases node-config` prints, and docs/hami.md says it."""

    def hami(self, share: Share) -> Any:
        (config,) = configs([share], [])
        return config

    def test_005_a_card_is_split_as_often_as_meant(self) -> None:
        assert self.hami(Share("hami", 3)).content["devicePlugin"]["deviceSplitCount"] == 3

    def test_018_memory_is_promised_once(self) -> None:
        assert self.hami(Share("hami", 2)).content["devicePlugin"]["deviceMemoryScaling"] == 1

    def test_019_a_card_has_100_cores(self) -> None:
        assert self.hami(Share("hami", 2)).content["devicePlugin"]["deviceCoreScaling"] == 1

    def test_018_others_that_promise_it_twice_are_told(self) -> None:
        config = {"devicePlugin": {"deviceMemoryScaling": 1.5}}
        written = {"data": {"device-config.yaml": yaml.safe_dump({"nvidia": config["devicePlugin"]})}}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hami"}, **written}
        assert "SHR030" in told({"ConfigMap/hami": document})

    def test_028_the_other_plugin_is_named(self) -> None:
        assert "NVIDIA's device plugin must not run there" in " ".join(self.hami(Share("hami", 2)).comment)

    @pytest.mark.parametrize("mode", ["time-slicing", "mps"])
    def test_034_shares_are_packed(self, mode: Any) -> None:
        text = self.hami(Share(mode, 2, "nvidia.com/gpu.shared")).content["config"]["map"][f"{mode}-2"]
        assert yaml.safe_load(text)["flags"]["plugin"]["sharedDevicesAllocationPolicy"] == "packed"


def test_every_row_is_here() -> None:
    """27 has a test of its own beside the table's, and those of the nodes are in their names."""
    named = {int(name.split()[0]) for table in (REFUSED, FOUND) for name in table}
    nodes = {int(name.split("_")[1]) for name in vars(TestNodes) if name.startswith("test_")}
    assert (named | nodes | CONSTRUCTED.keys()) - {0} == set(ROWS)


def test_015_p2p_nccl_has_buffers_beside_the_slice(render: Render) -> None:
    values = vllm(kvTransfer={"connector": "p2pNccl"}, version="0.23.0")
    message = (
        "global.vllm.kvTransfer.connector: p2pNccl keeps its buffers beside what --gpu-memory-utilization counts, and "
        "NCCL fails in slices and between MIG instances; set nixl, or hamiDecode.sharing.mode to none"
    )
    assert f"- {message}" in render.error("values/phase3-nccl.yaml", values=values).splitlines()


def test_026_shares_take_no_more_than_the_card(render: Render) -> None:
    for replicas in (2, 3, 7, 32):
        values = merged(TIME, sharing(replicasPerGpu=replicas, kvCacheMiB=1000))
        assert float(flags(render(PHASE, values=values))["gpu-memory-utilization"]) * replicas <= 0.9


def test_023_mps_keeps_its_shared_memory(render: Render) -> None:
    objects = render(PHASE, values=MPS)
    assert not has_shm(objects)
    assert not any(mount["mountPath"] == "/dev/shm" for mount in engine(objects, NAME)["volumeMounts"])
