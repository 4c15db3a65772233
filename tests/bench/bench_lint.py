"""`vllm-phases lint` on ever more objects: time and memory must grow in proportion.

Each release is a prefill, a decode, a router, three Services and a ConfigMap with a picker's configuration, in
a namespace of its own; the release of every other namespace shares one, as large clusters do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

RELEASE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: ROLE-N, namespace: NS, labels: {app: release-N, role: ROLE}}
spec:
  replicas: 2
  selector: {matchLabels: {app: release-N, role: ROLE}}
  template:
    metadata: {labels: {app: release-N, role: ROLE}}
    spec:
      enableServiceLinks: false
      terminationGracePeriodSeconds: 90
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0
          args:
            - Qwen/Qwen3-8B
            - --port=8000
            - --block-size=64
            - --max-model-len=16384
            - --kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"KV_ROLE"}
            - --shutdown-timeout=45
          env:
            - name: VLLM_NIXL_SIDE_CHANNEL_HOST
              valueFrom: {fieldRef: {fieldPath: status.podIP}}
          ports: [{name: http, containerPort: 8000}, {name: nixl, containerPort: 5600}]
          resources:
            requests: {cpu: '8', memory: 48Gi, nvidia.com/gpu: '1'}
            limits: {cpu: '8', memory: 48Gi, nvidia.com/gpu: '1'}
          startupProbe: {httpGet: {path: /health, port: http}, periodSeconds: 10, failureThreshold: 120}
          livenessProbe: {httpGet: {path: /health, port: http}, timeoutSeconds: 10, failureThreshold: 3}
          readinessProbe: {httpGet: {path: /health, port: http}, periodSeconds: 5, failureThreshold: 3}
          lifecycle: {preStop: {exec: {command: [sleep, '35']}}}
          volumeMounts: [{name: dshm, mountPath: /dev/shm}]
      volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 4Gi}}]
---
apiVersion: v1
kind: Service
metadata: {name: ROLE-N, namespace: NS}
spec:
  selector: {app: release-N, role: ROLE}
  ports: [{name: http, port: 8000, targetPort: http}]
---
"""
POOL = """\
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: pool-N, namespace: NS}
spec:
  selector: {matchLabels: {app: release-N}}
  targetPorts: [{number: 8000}]
  endpointPickerRef: {name: pool-N-epp, port: {number: 9002}}
---
"""
OBJECTS_A_RELEASE = 5
COUNTS = (1_000, 5_000, 10_000)


def manifests(objects: int) -> str:
    """That many objects as one stream."""
    parts = []
    for number in range(objects // OBJECTS_A_RELEASE):
        namespace = f"team-{number}" if number % 2 else "shared"
        for role, kv_role in (("prefill", "kv_producer"), ("decode", "kv_consumer")):
            parts.append(RELEASE.replace("KV_ROLE", kv_role).replace("ROLE", role))
            parts[-1] = parts[-1].replace("release-N", f"release-{number}").replace("-N,", f"-{number},")
            parts[-1] = parts[-1].replace("NS", namespace)
        parts.append(POOL.replace("NS", namespace).replace("-N", f"-{number}"))
    return "".join(parts)


@dataclass(frozen=True)
class Measured:
    """One process: seconds, those of the processor, MiB at its peak, and what it printed."""

    seconds: float
    worked: float
    peak: float
    said: str


def measured(words: list[str]) -> Measured:
    """Run a command; RuntimeError with what it says where it fails.

    The peak is read by wait4, since the usage of all children together would keep the largest of them.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(words, stdout=out, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        spent = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if process.returncode:
            raise RuntimeError(
                f"{words[0]} exited with {process.returncode}: {errors.read().decode()[-2000:]}"
            )
        worked = usage.ru_utime + usage.ru_stime
        return Measured(spent, worked, usage.ru_maxrss / 1024, out.read().decode())


def command(file: Path) -> list[str]:
    """What lints a file."""
    return [sys.executable, "-m", "vllm_phases", "lint", "--format", "json", "--exit-zero", str(file)]


def main() -> None:
    """Print a row for each count, and how the last compares with the first."""
    print("objects   seconds   processor   MiB at peak   findings   ms of processor an object")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count in COUNTS:
            file = Path(folder, f"{count}.yaml")
            file.write_text(manifests(count))
            run = measured(command(file))
            rows.append(run.worked / count)
            findings = len(json.loads(run.said)["findings"])
            row = f"{count:7d} {run.seconds:9.2f} {run.worked:11.2f} {run.peak:13.0f} {findings:10d}"
            print(f"{row} {1000 * rows[-1]:27.3f}")
    print(f"processor time an object, {COUNTS[-1]} against {COUNTS[0]}: {rows[-1] / rows[0]:.2f}")


if __name__ == "__main__":
    main()
