"""Record what the real scheduler decides: `HAMI_SCHEDULER=… python -m tests.pack.record`.

HAMI_SCHEDULER names HAMi's scheduler, built by hand from its sources outside this repository; kube-scheduler
and API server are those of `make tools`. Writes recorded.jsonl: a head, then a line for each scenario.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from .live import decide
from .scenarios import Scenario, generate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .live import Decisions
    from .scenarios import Json

FILE = Path(__file__).parent / "recorded.jsonl"
SEED, COUNT = 20261201, 320


def recorded() -> Iterator[tuple[Scenario, Decisions]]:
    """Each scenario of the file with what the real scheduler decided."""
    for line in FILE.read_text(encoding="utf-8").splitlines()[1:]:
        entry = json.loads(line)
        pods = [entry["kinds"][kind] for kind in entry["pods"]]
        yield Scenario(entry["name"], entry["nodes"], pods), entry["decisions"]


def write(scenarios: list[Scenario], decisions: list[Decisions], hami: str) -> None:
    """Write the file."""
    head: Json = {
        "about": "Decisions of HAMi's scheduler; format in tests/pack/scenarios.py and live.py",
        "how": [
            "in HAMi's sources at that commit: go build -o hami-scheduler ./cmd/scheduler",
            "here: HAMI_SCHEDULER=…/hami-scheduler python -m tests.pack.record",
        ],
        "hami": hami,
        "kubernetes": "v1.37.2, as tests/cluster/kubernetes/go.mod pins it",
        "seed": SEED,
    }
    lines = [head]
    for scenario, decided in zip(scenarios, decisions, strict=True):
        kinds = [pod for number, pod in enumerate(scenario.pods) if pod not in scenario.pods[:number]]
        pods = [kinds.index(pod) for pod in scenario.pods]
        entry = {"name": scenario.name, "nodes": scenario.nodes, "kinds": kinds, "pods": pods}
        lines.append({**entry, "decisions": decided})
    text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
    FILE.write_text(text, encoding="utf-8")


def main() -> None:
    """Record anew."""
    binary = os.environ.get("HAMI_SCHEDULER")
    if not binary:
        sys.exit("set HAMI_SCHEDULER to HAMi's scheduler, built from its sources")
    scenarios = generate(SEED, COUNT)
    with tempfile.TemporaryDirectory() as folder:
        decisions = decide(Path(binary).resolve(), Path(folder), scenarios)
    write(scenarios, decisions, os.environ.get("HAMI_VERSION", "v2.10.0 (commit 4707fb02c91c)"))
    print(f"{len(scenarios)} scenarios, {sum(map(len, decisions))} pods: {FILE.name}")


if __name__ == "__main__":
    main()
