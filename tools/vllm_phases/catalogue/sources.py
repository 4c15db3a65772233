"""Gets a vLLM release from the package index and reads it, with pip and an interpreter of its own.

Only pip talks to the index, so its own configuration (mirror, proxy, certificates) holds. A source
distribution is preferred: pip unpacks it and then fails to build it for want of torch, which is as far as is
needed. The releases without one (0.15) are read from their wheel.
"""

from __future__ import annotations

import json
import os
import subprocess
import venv
import zipfile
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from vllm_phases.catalogue import reader
from vllm_phases.finding import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def interpreter() -> Iterator[str]:
    """A Python that has pip and what reader.py needs, gone afterwards."""
    with TemporaryDirectory(prefix="vllm-phases-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python")
        _pip(python, "install", "--quiet", *reader.PACKAGES)
        yield python


@contextmanager
def release_tree(python: str, version: str) -> Iterator[Path]:
    """The unpacked release, gone afterwards; UsageError when the index has neither source nor wheel."""
    with TemporaryDirectory(prefix="vllm-phases-") as folder:
        yield _unpacked_source(python, version, Path(folder)) or _unpacked_wheel(
            python, version, Path(folder)
        )


def read(python: str, tree: Path, version: str) -> dict[str, Any]:
    """Flags, kv-transfer fields, environment variables and connectors of an unpacked release.

    UsageError when TREE holds another release or none, and with the release's own last words when its parser
    cannot be made.
    """
    if not (tree / "vllm" / "envs.py").is_file():
        raise UsageError(f"{tree} holds no vLLM release: vllm/envs.py is missing")
    if (found := _declared_version(tree)) not in (None, version):
        raise UsageError(f"{tree} holds vLLM {found}, not {version}")
    command = [python, "-I", reader.__file__, str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"{tree} cannot be read: {_last_line(done.stderr)}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _declared_version(tree: Path) -> str | None:
    """What a source distribution calls itself; a wheel's tree has no such file."""
    metadata = tree / "PKG-INFO"
    lines = metadata.read_text(encoding="utf-8").splitlines() if metadata.is_file() else []
    return next((line.split()[1] for line in lines if line.startswith("Version: ")), None)


def _unpacked_source(python: str, version: str, folder: Path) -> Path | None:
    """What pip leaves of a source distribution whose build fails; None when the index has none."""
    options = ("--no-binary", ":all:", "--no-build-isolation", "--no-clean", "--dest", str(folder))
    error = _download(python, version, options, {"TMPDIR": str(folder), "TEMP": str(folder)})
    trees = [path.parent for path in folder.glob("pip-*/*/PKG-INFO")]
    if not trees and "No matching distribution" not in error:
        raise UsageError(f"vLLM {version} cannot be downloaded: {_last_line(error)}")
    return trees[0] if trees else None


def _unpacked_wheel(python: str, version: str, folder: Path) -> Path:
    error = _download(python, version, ("--only-binary", ":all:", "--dest", str(folder)), {})
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        raise UsageError(f"vLLM {version} cannot be downloaded: {_last_line(error)}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(folder, [name for name in wheel.namelist() if name.endswith(".py")])
    return folder


def _download(python: str, version: str, options: tuple[str, ...], environment: dict[str, str]) -> str:
    """Run `pip download`; what it wrote to standard error."""
    command = [python, "-m", "pip", "download", "--quiet", "--no-deps", *options, f"vllm=={version}"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    return done.stderr


def _pip(python: str, *arguments: str) -> None:
    done = subprocess.run([python, "-m", "pip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"pip {arguments[0]} failed: {_last_line(done.stderr)}")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith("ERROR")] or text.splitlines()
    return lines[-1].removeprefix("ERROR: ").strip() if lines else "no message"
