"""Phase 3 on a real control plane: every way to share a GPU is admitted, and a pool never lacks decode on the climb.

HAMi does not run here. Its slices are placed by the default scheduler, by the name of the value that names HAMi's, on
nodes that advertise memory and cores as if each were one large card; so nothing here says which card a slice gets.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT

from .release import endpoints, eventually
from .test_llmd import LLMD, STACK, WAIT
from .test_pd_nccl import addresses, matching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .control_plane import ControlPlane
    from .release import Get, Helm

pytestmark = pytest.mark.cluster

PHASE3 = ("-f", ROOT / "values/phase3.yaml")
AS_HAMI = ("--set", "global.vllm.hami.schedulerName=default-scheduler")
POOL = {"llm-d.ai/role": "decode", "vllm-phases.dev/pool": "demo-pool"}
SURGE = "llmd.decode.rollout.maxSurge=1,llmd.decode.rollout.maxUnavailable=0"
MODES = {
    "phase3": AS_HAMI,
    "phase3-nccl": AS_HAMI,
    "phase3-mig": (),
    "phase3-timeslicing": (),
    "phase3-mps": (),
    "phase3-dra": (),
}
DRIVER = "gpu.nvidia.com"


@pytest.fixture
def mig_instances(control_plane: ControlPlane) -> Iterator[None]:
    """What NVIDIA's DRA driver would publish: 16 MIG instances on a node, and their class."""
    attributes = {"profile": {"string": "3g.40gb"}, "type": {"string": "mig"}}
    devices = [{"name": f"gpu-{index}", "attributes": attributes} for index in range(16)]
    pool = {"name": "shared-1", "generation": 1, "resourceSliceCount": 1}
    of_class = {
        "cel": {"expression": f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'mig'"}
    }
    version = {"apiVersion": "resource.k8s.io/v1"}
    control_plane.apply(
        {
            **version,
            "kind": "DeviceClass",
            "metadata": {"name": "mig.nvidia.com"},
            "spec": {"selectors": [of_class]},
        },
        {
            **version,
            "kind": "ResourceSlice",
            "metadata": {"name": "shared-1-gpus"},
            "spec": {"driver": DRIVER, "nodeName": "shared-1", "pool": pool, "devices": devices},
        },
    )
    yield
    control_plane.kubectl("delete", "deviceclass/mig.nvidia.com", "resourceslice/shared-1-gpus")


@pytest.mark.parametrize("phase", MODES)
@pytest.mark.usefixtures("mig_instances")
def test_every_mode_is_admitted_and_placed(helm: Helm, get: Get, phase: str) -> None:
    helm("install", "demo", STACK, "-f", ROOT / f"values/{phase}.yaml", *MODES[phase], *WAIT)
    assert len(addresses(get, "demo", "hami-decode")) == 8
    if phase == "phase3-dra":
        claims = get("resourceclaims")
        devices = {each["status"]["allocation"]["devices"]["results"][0]["device"] for each in claims}
        assert len(devices) == 8


@pytest.mark.parametrize(
    "sharing",
    [
        "mode=hami-mig",
        "mode=hami-dra",
        "mode=dra,hamiDecode.sharing.claim=timeSlicing,hamiDecode.sharing.kvCacheMiB=9000",
        "mode=dra,hamiDecode.sharing.claim=mps,hamiDecode.sharing.kvCacheMiB=9000",
        "mode=mig,hamiDecode.sharing.migStrategy=single",
    ],
)
def test_other_modes_are_admitted(helm: Helm, get: Get, sharing: str) -> None:
    """Not waited for: nobody gives these pods what they ask for here."""
    alone = "false" if "hami-mig" not in sharing else "true"
    values = f"hamiDecode.replicas=2,global.vllm.hami.enabled={alone},hamiDecode.sharing.{sharing}"
    helm("install", "demo", STACK, *PHASE3, "--set", values)
    eventually(lambda: len(found(get)), 2)


def found(get: Get) -> list[Any]:
    """The pods of hamiDecode."""
    pods: list[Any] = get("pods", "-l", "app.kubernetes.io/component=hami-decode")
    return pods


class Watch:
    """Looks at the pool's decode pods and the front door again and again, beside what the test does."""

    def __init__(self, get: Get) -> None:
        self._get = get
        self._over = threading.Event()
        self.looks = 0
        self.gaps: list[str] = []
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._over.is_set():
            if not ready(self._get):
                self.gaps.append(f"no ready decode pod at {time.monotonic():.1f}")
            if not endpoints(self._get, "demo-front-door"):
                self.gaps.append(f"nothing behind the front door at {time.monotonic():.1f}")
            self.looks += 1

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def ready(get: Get) -> list[str]:
    """The ready decode pods of the pool that are not about to end, by name."""
    selector = ",".join(f"{key}={value}" for key, value in POOL.items())
    return [
        pod["metadata"]["name"]
        for pod in get("pods", "-l", selector)
        if "deletionTimestamp" not in pod["metadata"]
        and {"type": "Ready", "status": "True"}.items()
        <= {
            key: value
            for condition in pod.get("status", {}).get("conditions", ())
            if condition["type"] == "Ready"
            for key, value in condition.items()
        }.items()
    ]


def test_phase_2_climbs_to_phase_3_without_a_moment_without_decode(helm: Helm, get: Get) -> None:
    """The steps of docs/climbing.md; the pool keeps its name and its engines of both kinds are in it."""
    pool = ("--set", "llmd.inferencePool.enabled=true")
    helm("install", "demo", STACK, *LLMD, *pool, *WAIT)
    before = get("inferencepool", "demo-pool")["spec"]
    door = get("service", "demo-front-door")["spec"]
    eventually(partial(lambda: len(ready(get))), 1)
    with Watch(get) as watch:
        helm("upgrade", "demo", STACK, *LLMD, *pool, "--set", SURGE, *WAIT)
        both = (*PHASE3, *AS_HAMI, *pool)
        helm("upgrade", "demo", STACK, *both, "--set", f"{SURGE},llmd.decode.replicas=1", *WAIT)
        assert len(matching(get, POOL)) == 9
        helm("upgrade", "demo", STACK, *both, *WAIT)
        eventually(lambda: len(ready(get)), 8)
    assert watch.looks > 5
    assert watch.gaps == []
    assert {name.rsplit("-", 2)[0] for name in ready(get)} == {"demo-hami-decode"}
    assert get("inferencepool", "demo-pool")["spec"] == before
    assert get("service", "demo-front-door")["spec"] == door
