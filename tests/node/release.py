"""A release on the cluster of these tests, as its user sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .machine import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from .site import Site

STACK = ROOT / "charts/vllm-stack"


@dataclass(frozen=True)
class Release:
    """Release `demo` of the umbrella in its namespace."""

    site: Site
    namespace: str

    def apply(self, command: str, phase: str, *sets: str) -> str:
        """`helm install` or `helm upgrade` with a phase's values, until everything is Ready."""
        files = (ROOT / f"values/{phase}.yaml", *self.site.values)
        settings = (f"--set={item}" for item in sets)
        values = (f"--values={file}" for file in files)
        return self.helm(command, "demo", STACK, *values, *settings, "--wait", "--timeout=10m")

    def helm(self, *args: str | Path) -> str:
        return self.site.cluster.helm(*args, "--namespace", self.namespace)

    def kubectl(self, *args: str) -> str:
        return self.site.cluster.kubectl(*args, "--namespace", self.namespace)

    def get(self, *args: str) -> Any:
        return self.site.cluster.get(*args, "--namespace", self.namespace)

    def pods(self, component: str) -> list[Any]:
        """The pods of a role, but for those about to end."""
        selector = f"app.kubernetes.io/instance=demo,app.kubernetes.io/component={component}"
        return [pod for pod in self.get("pods", "-l", selector) if "deletionTimestamp" not in pod["metadata"]]

    def until_gone(self, component: str) -> None:
        """Wait until a role's last pod has ended, for as long as its drain may take."""
        selector = f"app.kubernetes.io/instance=demo,app.kubernetes.io/component={component}"
        self.kubectl("wait", "--for=delete", "pod", "-l", selector, "--timeout=5m")

    @property
    def url(self) -> str:
        """The front door, as the pods of any namespace name it."""
        return f"http://demo-front-door.{self.namespace}"
