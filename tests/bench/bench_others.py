"""`vllm-phases lint` beside kubeconform and checkov, in one run and on the same objects.

The three do not do the same: kubeconform holds objects against Kubernetes' schemas, checkov against rules of
security, neither reads what vLLM is given. kubeconform gets the schemas that `lint` has, as files.
"""

from __future__ import annotations

import json
import tempfile
from importlib.resources import files
from pathlib import Path

from vllm_phases.render import DEFAULT_KUBE_VERSION

from tests.bench import bench_lint

OBJECTS = 1_000
CACHE = Path(__file__).parents[2] / ".cache"
PACKAGE = "kubernetes_validate"


def schemas(folder: Path) -> str:
    """Write the schemas of the objects' kinds as kubeconform looks for them; where they lie, in its words."""
    minor = ".".join(DEFAULT_KUBE_VERSION.split(".")[:2])
    source = Path(str(files(PACKAGE))) / "kubernetes-json-schema" / f"v{minor}.0-local-strict"
    for name in ("deployment-apps-v1", "service-v1", "_definitions"):
        content = json.loads((source / f"{name}.json").read_text())
        content.pop("$id", None)  # references would be sought there
        text = json.dumps(content).replace("/api/_definitions.json", "_definitions.json")
        (folder / f"{name}.json").write_text(text)
    return f"{folder}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"


def commands(file: Path, folder: Path) -> dict[str, list[str]]:
    """What is run, by the name of the program."""
    lint = bench_lint.command(file)
    kubeconform = [
        str(CACHE / "bin/kubeconform"),
        "-n",
        "1",
        "-ignore-missing-schemas",
        "-summary",
        "-output",
        "json",
    ]
    checkov = [str(CACHE / "checkov/bin/checkov"), "--framework", "kubernetes", "--quiet", "--compact"]
    return {
        "vllm-phases lint": lint,
        "kubeconform": [*kubeconform, "-schema-location", schemas(folder), str(file)],
        "checkov": [*checkov, "--skip-download", "--soft-fail", "--output", "json", "--file", str(file)],
    }


def checked(name: str, said: str) -> str:
    """What a program says that it has looked at and found."""
    answer = json.loads(said)
    if name == "kubeconform":
        return f"{answer['summary']['valid']} objects valid, {answer['summary']['skipped']} without a schema"
    if name == "checkov":
        return f"{answer['summary']['passed']} checks passed, {answer['summary']['failed']} failed"
    return f"{len(answer['findings'])} findings"


def main() -> None:
    """Print a row for each program, with its time as a part of lint's."""
    print(f"{OBJECTS} objects: prefill, decode, Services and InferencePools")
    print("program             seconds   processor   MiB at peak   of lint   what it says")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "objects.yaml"
        file.write_text(bench_lint.manifests(OBJECTS))
        first = 0.0
        for program, command in commands(file, folder).items():
            measured = bench_lint.measured(command)
            first = first or measured.worked
            numbers = f"{measured.seconds:9.2f} {measured.worked:11.2f} {measured.peak:13.0f}"
            print(
                f"{program:18s} {numbers} {measured.worked / first:9.2f}   {checked(program, measured.said)}"
            )


if __name__ == "__main__":
    main()
