"""Phase 1 on processors as a service of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.engine import pods
from tests.engine.process import Server

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.conftest import Objects, Render

FILES = ("values/phase1.yaml", "values/overlays/cpu.yaml")
MODEL = "Qwen/Qwen3-0.6B"
"""The name that the overlay gives to what is served."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Machine:
    """What engines are made of: the programs, their release, a model, and a folder for what they write."""

    binaries: Path
    release: str
    model: Path
    folder: Path

    def values(self) -> dict[str, Any]:
        """`global.vllm` of all engines here: a model in a folder, no network, and two limits of the machine.

        Some processors announce bfloat16 instructions and fault on them, hence float32; without eager mode
        torch would compile, for minutes and with a C++ compiler.
        """
        source = {"type": "hostPath", "hostPath": {"path": str(self.model)}}
        return {
            "version": self.release,
            "model": {"source": source},
            "huggingface": {"offline": True},
            "args": {"dtype": "float32", "enforce-eager": True},
            "env": {"VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"},
        }

    def helm_test(
        self, objects: Objects, folder: Path, hosts: Mapping[str, str], secrets: pods.Secrets | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command of a release's test pod to its end; `hosts` are the Services that it asks."""
        ran = pods.command(pods.helm_test(objects), folder, secrets or {}, hosts=hosts)
        env = {"PATH": f"{self.binaries}:{os.defpath}", **ran.env}
        return subprocess.run(
            ran.argv, env=env, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )


@dataclass(frozen=True)
class Service:
    """One release `demo`: `sets` is what it adds to FILES, `secrets` what the cluster would hold."""

    render: Render
    machine: Machine
    sets: tuple[str, ...] = ()
    secrets: pods.Secrets = field(default_factory=dict)
    port: int = field(default_factory=free_port)

    @property
    def folder(self) -> Path:
        """What its pods write, and the engine's log."""
        folder = self.machine.folder / str(self.port)
        folder.mkdir(exist_ok=True)
        return folder

    def objects(self, *sets: str) -> Objects:
        return self.render(*FILES, values=self._for_this_machine(), set=[*self.sets, *sets])

    def start(self) -> Server:
        """Start the engine of the rendered Deployment and wait until it serves."""
        (pod,) = pods.engines(self.objects())
        engine = Server(pod, self.machine.binaries, self.folder, self.secrets)
        try:
            engine.wait()
        except BaseException:
            engine.stop()
            raise
        return engine

    def helm_test(self, *sets: str, secrets: pods.Secrets | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command of the rendered test pod to its end, with further values or other secrets."""
        hosts = {"demo-front-door": "127.0.0.1"}
        return self.machine.helm_test(self.objects(*sets), self.folder, hosts, secrets or self.secrets)

    def _for_this_machine(self) -> dict[str, Any]:
        """The machine's own values, on loopback only and on a port that is free."""
        vllm = self.machine.values()
        vllm["args"]["host"] = "127.0.0.1"
        return {
            "global": {"vllm": vllm},
            "base": {"port": self.port},
            "frontDoor": {"port": self.port},
        }
