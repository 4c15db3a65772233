"""`vllm-phases lint` on ever more objects: time and memory must grow in proportion.

Each release is a prefill, a decode, a router, three Services and a ConfigMap with a picker's configuration, in
a namespace of its own; the release of every other namespace shares one, as large clusters do.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
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


def measured(file: Path) -> tuple[float, float, float, int]:
    """Seconds, those of the processor, MiB at the peak, and findings of one process."""
    command = [sys.executable, "-m", "vllm_phases", "lint", "--format", "json", "--exit-zero", str(file)]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    spent = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, worked, after.ru_maxrss / 1024, len(json.loads(done.stdout)["findings"])


def main() -> None:
    """Print a row for each count, and how the last compares with the first."""
    print("objects   seconds   processor   MiB at peak   findings   ms of processor an object")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count in COUNTS:
            file = Path(folder, f"{count}.yaml")
            file.write_text(manifests(count))
            seconds, worked, peak, findings = measured(file)
            rows.append(worked / count)
            row = f"{count:7d} {seconds:9.2f} {worked:11.2f} {peak:13.0f} {findings:10d}"
            print(f"{row} {1000 * rows[-1]:27.3f}")
    print(f"processor time an object, {COUNTS[-1]} against {COUNTS[0]}: {rows[-1] / rows[0]:.2f}")


if __name__ == "__main__":
    main()
