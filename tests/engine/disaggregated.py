"""Phase 2 on processors as processes of this machine: prefill, decode and the router before them.

Each pod has a loopback address of its own, so that all keep the ports of the chart. One thing of the rendered
pods is replaced: there is no Kubernetes here that the router could ask for its engines, so it is given their
addresses (`static`). That it finds them by itself is proved on a real node, in tests/node.
"""

from __future__ import annotations

import copy
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.engine import pods
from tests.engine.process import Server

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.conftest import Objects, Render
    from tests.engine.service import Machine

    Pod = dict[str, Any]
    Change = Callable[[Pod], Pod]

FILES = ("values/phase2-nccl.yaml", "values/overlays/cpu.yaml")
NETWORK = f"127.{os.getpid() // 256 % 256}.{os.getpid() % 256}"  # two runs on one machine do not meet
ADDRESSES = {role: f"{NETWORK}.{host}" for host, role in enumerate(("router", "prefill", "decode"), 2)}
URLS = {role: f"http://{address}:8000" for role, address in ADDRESSES.items()}
HOSTS = {f"demo-{role}": address for role, address in ADDRESSES.items()}

_DISCOVERY = re.compile(r"--service-discovery|--(prefill|decode)-selector|app\.kubernetes\.io/")


def with_arguments(pod: Pod, change: Callable[[list[str]], list[str]]) -> Pod:
    """A pod whose first container has other arguments."""
    changed = copy.deepcopy(pod)
    changed["containers"][0]["args"] = change(changed["containers"][0]["args"])
    return changed


def as_rendered(pod: Pod) -> Pod:
    return pod


def static(router: Pod) -> Pod:
    """The router with the addresses of its engines instead of discovery."""
    engines = ["--prefill", URLS["prefill"], "--decode", URLS["decode"]]
    return with_arguments(
        router, lambda words: [word for word in words if not _DISCOVERY.match(word)] + engines
    )


@dataclass
class Disaggregated:
    """One release `demo` of FILES."""

    render: Render
    machine: Machine
    servers: dict[str, Server] = field(default_factory=dict)
    _changes: dict[str, Change] = field(default_factory=dict)

    def become(self, prefill: Change | None = as_rendered, decode: Change | None = as_rendered) -> None:
        """See that both roles run so changed, or not at all (None); what runs so already is left alone."""
        wanted = {"prefill": prefill, "decode": decode}
        for role in [role for role in self._changes if wanted.get(role, static) is not self._changes[role]]:
            self._stop(role)
        for role, change in wanted.items():
            if change and role not in self.servers:
                self._start(role, change)
        self._wait(*wanted)
        if "router" not in self.servers:
            self._start("router", static)
        if prefill and decode:  # or it would never be ready
            self._wait("router")

    def stop(self) -> None:
        for role in list(self.servers):
            self._stop(role)

    def helm_test(self, timeout: int = 120) -> subprocess.CompletedProcess[str]:
        """Run the release's test, which may take so many seconds."""
        objects = self.objects(f"global.vllm.test.timeoutSeconds={timeout}")
        hosts = {**HOSTS, "demo-front-door": ADDRESSES["router"]}
        return self.machine.helm_test(objects, self.machine.folder, hosts)

    def objects(self, *sets: str) -> Objects:
        return self.render(*FILES, values=self._for_this_machine(), set=sets)

    def _start(self, role: str, change: Change) -> None:
        folder = self.machine.folder / role
        folder.mkdir(exist_ok=True)
        pod = change(pods.deployment(self.objects(), f"demo-{role}"))
        self.servers[role] = Server(pod, self.machine.binaries, folder, {}, ADDRESSES[role])
        self._changes[role] = change

    def _wait(self, *roles: str) -> None:
        try:
            for role in self.servers.keys() & roles:
                self.servers[role].wait()
        except BaseException:
            self.stop()
            raise

    def _stop(self, role: str) -> None:
        del self._changes[role]
        self.servers.pop(role).stop()

    def _for_this_machine(self) -> dict[str, Any]:
        """The machine's own values, an address for each pod and a core for each engine.

        With more threads than cores those of one engine wait, spinning, for those of the other. And a router
        that is given its engines' addresses refuses the policy power_of_two for fewer than two.
        """
        cores = sorted(os.sched_getaffinity(0))
        args = {"host": ADDRESSES["router"], "prometheus-host": ADDRESSES["router"]}
        layer: dict[str, Any] = {"router": {"args": args, "policies": {"decode": "round_robin"}}}
        for role, core in (("prefill", cores[0]), ("decode", cores[-1])):
            env = {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": str(core)}
            layer[role] = {"args": {"host": ADDRESSES[role]}, "env": env}
        return {"global": {"vllm": self.machine.values()}, "pdNccl": layer, "frontDoor": {"port": 8000}}
