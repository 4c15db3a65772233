"""A release that climbs from phase 1 to phase 2 in the steps of docs/climbing.md, while a client keeps asking."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.cluster.control_plane import CommandError

from .client import sleeping_pod

if TYPE_CHECKING:
    from collections.abc import Callable

    from .client import Client
    from .release import Release

PROMPTS = [f"{number}: " + " ".join(["red green blue"[: 5 + number]] * 12) for number in range(20)]

# Asks all the time, a new connection each time, and prints one line for each answer. The pause leaves the machine's
# few cores to the engines that start meanwhile.
LOAD = """
import json, sys, time, urllib.request
url, model = sys.argv[1:]
number = 0
while True:
    number += 1
    body = {"model": model, "prompt": f"{number} one two three", "max_tokens": 4, "temperature": 0}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            said = "answered" if json.load(answer)["usage"]["completion_tokens"] else "empty"
    except Exception as error:
        said = f"{type(error).__name__} {error}"
    print(f"{time.time():.0f} {said}", flush=True)
    time.sleep(0.5)
"""

# Sums a metric over the pods of a role, from inside the cluster.
COUNT = """
import sys, urllib.request
pods, name = sys.argv[1].split(","), sys.argv[2]
total = 0.0
for pod in pods:
    for line in urllib.request.urlopen(f"http://{pod}/metrics", timeout=30).read().decode().splitlines():
        if line.split("{")[0].split(" ")[0] == name:
            total += float(line.rsplit(" ", 1)[1])
print(total)
"""

STEPS = {
    "both layers up": ("base.enabled=true", "frontDoor.to=base"),
    "the cut-over": ("base.enabled=true",),
    "phase 1 retired": (),
}


@dataclass(frozen=True)
class Climbed:
    """The release in phase 2; what it answered in phase 1, and what the client was told meanwhile, a line a request."""

    release: Release
    model: str
    answers: list[str]
    load: list[str]


def climb(
    release: Release, client: Client, phase: str, progress: Callable[[str], None], *sets: str
) -> Climbed:
    """Install phase 1 and take the release to another phase, with these values set as well."""
    progress("helm install of phase 1, until its engine is Ready")
    release.apply("install", "phase1")
    (only,) = client.get(f"{release.url}/v1/models")["data"]
    model = str(only["id"])
    said = answers(release, client, model)
    url = f"{release.url}/v1/completions"
    pod = sleeping_pod("load", release.site.image, "python3", "-c", LOAD, url, model)
    release.site.cluster.apply(pod, namespace=client.namespace)
    for step, of_step in STEPS.items():
        progress(f"helm upgrade to {phase}: {step}")
        release.apply("upgrade", phase, "global.vllm.test.timeoutSeconds=60", *sets, *of_step)
        time.sleep(5)
    release.until_gone("server")
    load = release.site.cluster.kubectl("logs", "load", "--namespace", client.namespace).splitlines()
    release.site.cluster.kubectl("delete", "pod", "load", "--namespace", client.namespace)
    return Climbed(release, model, said, load)


def answers(release: Release, client: Client, model: str) -> list[str]:
    """Greedy answers to the prompts."""
    url = f"{release.url}/v1/completions"
    body = {"model": model, "max_tokens": 16, "temperature": 0}
    return [client.post(url, {**body, "prompt": prompt})["choices"][0]["text"] for prompt in PROMPTS]


@dataclass(frozen=True)
class Insider:
    """Reads engines' counters as the release's own test does: from a pod that its policies let in."""

    release: Release

    @classmethod
    def start(cls, release: Release) -> Insider:
        pod = sleeping_pod("insider", release.site.image)
        labels = {"app.kubernetes.io/instance": "demo", "app.kubernetes.io/component": "test"}
        pod["metadata"]["labels"] = labels
        release.site.cluster.apply(pod, namespace=release.namespace)
        release.kubectl("wait", "--for=condition=Ready", "pod/insider", "--timeout=5m")
        return cls(release)

    def count(self, component: str, metric: str, port: int = 8000) -> float:
        """The sum of a metric of vLLM over a role's pods."""
        pods = ",".join(f"{pod['status']['podIP']}:{port}" for pod in self.release.pods(component))
        command = ("exec", "-i", "insider", "-n", self.release.namespace, "--", "python3", "-")
        return float(self.release.site.cluster.kubectl(*command, pods, f"vllm:{metric}", stdin=COUNT))


def helm_test(release: Release) -> tuple[bool, str]:
    """Whether `helm test` passes, and what its pod says."""
    try:
        release.helm("test", "demo", "--timeout=5m")
        passed = True
    except CommandError:
        passed = False
    return passed, release.kubectl("logs", "demo-test")
