"""How a release gets into the catalogue: read from its own parser, in a Python of its own, without torch.

The release here is a few files shaped like vLLM's; the real ones are read by hand (docs/catalogue.md), since
they come from the package index.
"""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from vllm_phases.catalogue import sources, store
from vllm_phases.commands.catalogue import catalogue
from vllm_phases.finding import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = {
    "vllm/__init__.py": "",
    "vllm/envs.py": """
from typing import Any, Callable
environment_variables: dict[str, Callable[[], Any]] = {
    "VLLM_PORT": lambda: None,
    "VLLM_API_KEY": lambda: None,
}
""",
    "vllm/config/__init__.py": """
from dataclasses import dataclass, field
from typing import Any, Optional
import torch
import torch.distributed as distributed

print("a release logs as it is imported")

class DeviceConfig:
    def __post_init__(self):
        raise RuntimeError("no accelerator")

@dataclass
class KVTransferConfig:
    kv_connector: Optional[str] = None
    kv_port: int = 14579
    kv_buffer_device: str = field(default_factory=lambda: torch.device())
    extra: dict[str, Any] = field(default_factory=dict)
""",
    "vllm/distributed/kv_transfer/kv_connector/factory.py": """
class KVConnectorFactory:
    @classmethod
    def register_connector(cls, name, module, cls_name): ...

KVConnectorFactory.register_connector("NixlConnector", "vllm.nixl", "NixlConnector")
KVConnectorFactory.register_connector("ExampleConnector", "vllm.example", "ExampleConnector")
""",
    "vllm/utils/__init__.py": "",
    "vllm/utils/argparse_utils.py": "from argparse import ArgumentParser as FlexibleArgumentParser",
    "vllm/entrypoints/__init__.py": "",
    "vllm/entrypoints/openai/__init__.py": "",
    "vllm/entrypoints/openai/cli_args.py": """
import json
from argparse import BooleanOptionalAction
from dataclasses import dataclass
import a_package_that_is_not_there
from vllm.config import DeviceConfig

@dataclass
class CompilationConfig:
    level: int = 0

def parse_dataclass(text, cls=CompilationConfig):
    return cls(**json.loads(text))

def optional_type(converter):
    def _optional_type(text):
        return None if text == "None" else converter(text)
    return _optional_type

def make_arg_parser(parser):
    DeviceConfig.__post_init__(None)
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name", nargs="+", type=str)
    parser.add_argument("--tensor-parallel-size", "-tp", type=optional_type(int), default=1)
    parser.add_argument("--enforce-eager", action=BooleanOptionalAction, default=False)
    parser.add_argument("--dtype", choices=["auto", "half"], default="auto")
    parser.add_argument("--compilation-config", type=parse_dataclass, default=CompilationConfig())
    return parser
""",
}

CONTENTS = {
    "configs": {
        "compilation-config": {"class": "CompilationConfig", "closed": False},
        "compilation-config.level": {"type": "int"},
    },
    "connectors": {"ExampleConnector": {}, "NixlConnector": {}},
    "env": {"VLLM_API_KEY": {}, "VLLM_PORT": {}},
    "kv_transfer": {
        "extra": {"default": {}, "type": "dict[str, Any]"},
        "kv_buffer_device": {"computed": True, "type": "str"},
        "kv_connector": {"type": "str | None"},
        "kv_port": {"default": 14579, "type": "int"},
    },
    "flags": {
        "compilation-config": {"default": {}, "type": "json"},
        "dtype": {"choices": ["auto", "half"], "default": "auto", "type": "str"},
        "enforce-eager": {
            "action": "boolean",
            "default": False,
            "options": ["--enforce-eager", "--no-enforce-eager"],
        },
        "help": {"action": "help", "options": ["-h", "--help"]},
        "port": {"default": 8000, "type": "int"},
        "served-model-name": {"nargs": "+", "type": "str"},
        "tensor-parallel-size": {
            "default": 1,
            "options": ["--tensor-parallel-size", "-tp"],
            "type": "optional int",
        },
    },
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / "release" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "release"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue that a test may change, and this Python in place of one made with pip."""

    @contextmanager
    def this() -> Iterator[str]:
        yield sys.executable

    shutil.copytree(store.DATA, tmp_path / "data")
    monkeypatch.setattr(store, "DATA", tmp_path / "data")
    monkeypatch.setattr(sources, "interpreter", this)
    return tmp_path / "data"


def contents(data: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in data.iterdir()}


def test_a_release_is_read_without_what_it_imports(tree: Path) -> None:
    assert sources.read(sys.executable, tree, "0.98.0") == CONTENTS


def test_add_writes_the_release_into_the_data(tree: Path, data: Path) -> None:
    result = CliRunner().invoke(catalogue, ["add", "0.98.0", "--from", str(tree)])
    assert result.stderr == "making a Python to read it with …\n"
    assert result.stdout == (
        "vLLM 0.98.0: 2 connectors, 4 kv-transfer fields, 7 flags, 2 environment variables\n"
    )
    assert json.loads((data / "releases.json").read_text())["releases"][-1] == "0.98.0"
    assert {kind: store.at(kind, "0.98.0") for kind in store.KINDS} == CONTENTS


def test_add_leaves_every_other_release_as_it_was(tree: Path, data: Path) -> None:
    before = {
        (kind, version): store.at(kind, version) for kind in store.KINDS for version in store.releases()
    }
    assert CliRunner().invoke(catalogue, ["add", "0.12.5", "--from", str(tree)]).exit_code == 0
    assert {key: store.at(*key) for key in before} == before


@pytest.mark.parametrize("version", ["latest", "0.34", "0.34.0rc1", "v0.34.0"])
def test_add_takes_a_release_number_alone(version: str, tree: Path, data: Path) -> None:
    before = contents(data)
    error = CliRunner().invoke(catalogue, ["add", version, "--from", str(tree)]).exception
    assert isinstance(error, UsageError)
    assert str(error) == f"{version!r} is not a release number: give three numbers, such as 0.33.0"
    assert contents(data) == before


def test_a_folder_without_a_release_is_refused(tmp_path: Path, data: Path) -> None:
    before = contents(data)
    error = CliRunner().invoke(catalogue, ["add", "0.98.0", "--from", str(tmp_path)]).exception
    assert isinstance(error, UsageError)
    assert str(error) == f"{tmp_path} holds no vLLM release: vllm/envs.py is missing"
    assert contents(data) == before


def test_a_folder_with_another_release_is_refused(tree: Path, data: Path) -> None:
    (tree / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: vllm\nVersion: 0.97.0\n")
    before = contents(data)
    error = CliRunner().invoke(catalogue, ["add", "0.98.0", "--from", str(tree)]).exception
    assert isinstance(error, UsageError)
    assert str(error) == f"{tree} holds vLLM 0.97.0, not 0.98.0"
    assert contents(data) == before


def test_a_release_that_breaks_says_why_and_writes_nothing(tree: Path, data: Path) -> None:
    (tree / "vllm/entrypoints/openai/cli_args.py").write_text("raise ImportError('transformers is too old')")
    before = contents(data)
    error = CliRunner().invoke(catalogue, ["add", "0.98.0", "--from", str(tree)]).exception
    assert isinstance(error, UsageError)
    assert str(error) == f"{tree} cannot be read: ImportError: transformers is too old"
    assert contents(data) == before


def test_a_release_whose_parser_moved_says_so(tree: Path) -> None:
    (tree / "vllm/entrypoints/openai/cli_args.py").unlink()
    with pytest.raises(UsageError) as error:
        sources.read(sys.executable, tree, "0.98.0")
    assert str(error.value) == (
        f"{tree} cannot be read: RuntimeError: no make_arg_parser in vllm.entrypoints.common.cli_args, "
        "vllm.entrypoints.launchers.cli_args, vllm.entrypoints.openai.cli_args: the release moved it"
    )


PIP = """#!{python}
import os, pathlib, sys, zipfile
dest = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
if "--no-binary" in sys.argv:
    {source}
else:
    {wheel}
"""
UNPACKED = """
    tree = pathlib.Path(os.environ["TMPDIR"], "pip-download-x", "vllm_y")
    tree.mkdir(parents=True)
    (tree / "PKG-INFO").touch()
    sys.exit("ERROR: metadata-generation-failed")
"""
WHEEL = """
    with zipfile.ZipFile(dest / "vllm-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("vllm/envs.py", "")
        wheel.writestr("vllm/_C.abi3.so", "")
"""
NONE = 'sys.exit("ERROR: No matching distribution found for vllm==0.98.0")'


def pip(folder: Path, source: str, wheel: str) -> str:
    """A Python whose pip has a source distribution, a wheel or neither."""
    program = folder / "python"
    program.write_text(PIP.format(python=sys.executable, source=source.strip(), wheel=wheel.strip()))
    program.chmod(0o755)
    return str(program)


def test_the_source_distribution_is_what_pip_leaves_of_a_build_that_fails(tmp_path: Path) -> None:
    with sources.release_tree(pip(tmp_path, UNPACKED, NONE), "0.98.0") as tree:
        assert (tree / "PKG-INFO").is_file()
    assert not tree.exists()


def test_without_a_source_distribution_the_wheel_is_read(tmp_path: Path) -> None:
    with sources.release_tree(pip(tmp_path, NONE, WHEEL), "0.98.0") as tree:
        assert [path.name for path in tree.rglob("vllm/*")] == ["envs.py"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (NONE, "No matching distribution found for vllm==0.98.0"),
        ("sys.exit('WARNING: slow\\nERROR: Could not connect')", "Could not connect"),
    ],
)
def test_a_release_that_cannot_be_had_is_refused(source: str, message: str, tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError) as error,
        sources.release_tree(pip(tmp_path, source, NONE), "0.98.0"),
    ):
        pytest.fail("a tree was found")
    assert str(error.value) == f"vLLM 0.98.0 cannot be downloaded: {message}"
