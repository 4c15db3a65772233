"""`vllm-phases check` of every phase against one `helm template` process a file, in one run.

Helm alone renders; the check also holds values against the schema, and objects against Kubernetes and vLLM.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
HELM = ROOT / ".cache/bin/helm"
CHECK = [sys.executable, "-m", "vllm_phases", "check"]
RUNS = 7


def seconds(*commands: list[str]) -> float:
    """Wall time of the commands one after the other: the median of RUNS, after one run to warm the caches."""
    times = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        for command in commands:
            subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return median(times[1:])


def main() -> None:
    """Print both times and their ratio."""
    phases = sorted((ROOT / "values").glob("phase*.yaml"))
    templates = [[str(HELM), "template", "demo", "charts/vllm-stack", "-f", str(phase)] for phase in phases]
    start_up, check, helm = seconds([*CHECK[:-1], "--version"]), seconds(CHECK), seconds(*templates)
    print(f"values files                            {len(phases):8d}")
    print(f"vllm-phases --version                   {start_up:8.3f} s")
    print(f"vllm-phases check, all files            {check:8.3f} s")
    print(f"helm template, one process a file       {helm:8.3f} s")
    print(f"helm template / vllm-phases check       {helm / check:8.2f}")


if __name__ == "__main__":
    main()
