"""Reads one vLLM release: its `serve` parser, environment variables, connectors and kv-transfer fields.

Run as a script by an interpreter of its own: `python reader.py TREE`, where TREE holds the package `vllm`;
the answer is JSON on standard output. It imports nothing of vllm_phases and needs only the packages in
PACKAGES. torch and whatever else the release would import is replaced by stand-ins, as vLLM does for its own
documentation (docs/mkdocs/gen_files/generate_argparse.py); nothing of the release but its parser is run.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import enum
import importlib
import importlib.machinery
import importlib.metadata
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACKAGES = ("cachetools", "jinja2", "msgspec", "packaging", "pydantic", "pyyaml", "regex", "requests")
"""What a release needs beside the stand-ins until its parser can be made."""

PARSER_MODULES = (
    "vllm.entrypoints.common.cli_args",  # 0.33
    "vllm.entrypoints.launchers.cli_args",  # 0.29 to 0.32
    "vllm.entrypoints.openai.cli_args",  # up to 0.28
)
_FLEXIBLE_PARSER_MODULES = ("vllm.utils.argparse_utils", "vllm.utils")  # the second up to 0.11.0
CONNECTORS = "vllm/distributed/kv_transfer/kv_connector/factory.py"
_MAX_STAND_INS = 200

_TYPES = {
    "bool": "bool",
    "float": "float",
    "human_readable_int": "human int",
    "human_readable_int_or_auto": "human int or auto",
    "int": "int",
    "loads": "json",
    "parse_dataclass": "json",
    "union_dict_and_str": "json or str",
}
_ACTIONS = {
    "_AppendAction": "append",
    "_HelpAction": "help",
    "_StoreTrueAction": "store_true",
    "BooleanOptionalAction": "boolean",
    "EnableDisableAction": "boolean",
}


class StandIn(MagicMock):
    """A module or class that is not there; pydantic may use it as the type of a field."""

    def __get_pydantic_core_schema__(self, *_: object) -> dict[str, str]:
        """Accept any value."""
        return {"type": "any"}


class _Registry:
    """Stands in for the classes whose `register` decorates model layers."""

    @staticmethod
    def register(*_: object, **__: object) -> Callable[[type], type]:
        return lambda cls: cls


class _Module:
    """A base class for layers: a mock would clash with ABCMeta."""


def main(tree: Path) -> None:
    """Write what the release in TREE has to standard output."""
    sys.path.insert(0, str(tree))
    install_stand_ins()
    with contextlib.redirect_stdout(sys.stderr):  # the release logs as it is imported
        parser, kv_transfer = with_stand_ins(load_release)
    answer = {
        "flags": dict(flags(parser)),
        "kv_transfer": {field.name: kv_field(field) for field in dataclasses.fields(kv_transfer)},
        "env": {name: {} for name in env_names(tree / "vllm/envs.py")},
        "connectors": {name: {} for name in connector_names(tree / CONNECTORS)},
        "configs": dict(configs(parser)),
    }
    json.dump(answer, sys.stdout)


def install_stand_ins() -> None:
    """Put stand-ins where the release expects torch and its own compiled parts."""
    neural = StandIn(Parameter=object, Module=_Module)
    schema = StandIn(infer_schema=lambda function, **_: f"(Tensor x) -> {_returned(function)}")
    stand_ins = {
        "torch": StandIn(nn=neural, library=schema),
        "torch.nn": neural,
        "torch.library": schema,
        "vllm._C": StandIn(),
        "vllm._C_stable_libtorch": StandIn(),
        "vllm.model_executor.custom_op": StandIn(CustomOp=_Registry, PluggableLayer=_Registry),
        "vllm.utils.torch_utils": StandIn(direct_register_custom_op=lambda *_, **__: None),
    }
    for name, stand_in in stand_ins.items():
        add_stand_in(name, stand_in)
    # recent enough for every check of a dependency
    importlib.metadata.version = lambda distribution_name: "9999.0"


def add_stand_in(name: str, stand_in: StandIn | None = None) -> None:
    """Let `import NAME` give a stand-in."""
    stand_in = stand_in or StandIn()
    stand_in.__spec__ = importlib.machinery.ModuleSpec(name, None)
    sys.modules[name] = stand_in


def _returned(function: Callable[..., Any]) -> str:
    """The outputs of an operator, as many as its annotation says: vLLM counts them."""
    annotation = str(function.__annotations__["return"])
    return "(" + ", ".join(["Tensor"] * annotation.count("Tensor")) + ")"


def with_stand_ins(action: Callable[[], Any]) -> Any:
    """Run an import until nothing is missing any more, each time with a stand-in for what was."""
    for _ in range(_MAX_STAND_INS):
        try:
            return action()
        except ModuleNotFoundError as error:
            if error.name is None or error.name in sys.modules:
                raise
            add_stand_in(error.name)
    raise RuntimeError(f"more than {_MAX_STAND_INS} modules are missing")


def load_release() -> tuple[argparse.ArgumentParser, type]:
    """The parser of `vllm serve` and the class KVTransferConfig."""
    config = importlib.import_module("vllm.config")
    config.DeviceConfig.__post_init__ = lambda self: None  # would look for an accelerator
    make = attribute(PARSER_MODULES, "make_arg_parser")
    parser = make(attribute(_FLEXIBLE_PARSER_MODULES, "FlexibleArgumentParser")(prog="vllm serve"))
    return parser, config.KVTransferConfig


def attribute(modules: tuple[str, ...], name: str) -> Any:
    """The attribute in the first of the modules that this release has."""
    for module in modules:
        try:
            return getattr(importlib.import_module(module), name)
        except (ModuleNotFoundError, AttributeError) as error:
            if not (isinstance(error, AttributeError) or module.startswith(error.name or "?")):
                raise
    raise RuntimeError(f"no {name} in {', '.join(modules)}: the release moved it")


def flags(parser: argparse.ArgumentParser) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every option of the parser by its name: the long option that spells its destination, else the first."""
    strings = parser._option_string_actions
    for action in parser._actions:
        if not action.option_strings:
            continue
        options = list(action.option_strings)
        spelt = "--" + action.dest.replace("_", "-")
        name = spelt if spelt in options else next(option for option in options if option.startswith("--"))
        hidden = [string for string, owner in strings.items() if owner is action and string not in options]
        record = {
            "options": None if options == [name] else options,
            "hidden": hidden or None,
            "dest": None if name == spelt else action.dest,
            "default": plain(action.default),
            "type": None if action.nargs == 0 else type_name(action.type),
            "choices": None if action.choices is None else [plain(choice) for choice in action.choices],
            "nargs": action.nargs or None,
            "action": _ACTIONS.get(type(action).__name__),
        }
        yield name.removeprefix("--"), without_nothing(record)


def without_nothing(record: dict[str, Any]) -> dict[str, Any]:
    """The keys that say something: what is left out reads as None, or as Flag in release.py says."""
    return {key: value for key, value in record.items() if value is not None}


def type_name(converter: Any) -> str:
    """What the option's value is turned into, in a word; a wrapper is named by what it wraps."""
    name = getattr(converter, "__name__", "")
    wrapped = next((cell.cell_contents for cell in getattr(converter, "__closure__", None) or ()), None)
    if name == "_optional_type":
        return f"optional {type_name(wrapped)}"
    if name == "_parse_type":
        return type_name(wrapped)
    return _TYPES.get(name, "str")


def kv_field(field: dataclasses.Field[Any]) -> dict[str, Any]:
    """Type and default of a field; a default that the engine works out when it starts is `computed`."""
    default: Any = field.default
    factory: Any = field.default_factory
    if type(default).__name__ == "FieldInfo":  # pydantic's way to say both
        default, factory = default.default, default.default_factory
    if factory in (dict, list):
        default = factory()
    if default is dataclasses.MISSING or type(default).__name__ == "PydanticUndefinedType":
        return {"type": annotation(field.type), "computed": True}
    return without_nothing({"type": annotation(field.type), "default": plain(default)})


def configs(parser: argparse.ArgumentParser) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each flag whose JSON becomes a configuration object, and each key that it takes: "flag" and "flag.key".

    closed: whether the class refuses keys that it does not have; else they are passed over. A class that
    rewrites its keys before it reads them is left out: what it takes cannot be told from its fields.
    """
    for action in parser._actions:
        found = _configuration(action.type)
        if found is None or _rewrites(found):
            continue
        name = next(option for option in action.option_strings if option.startswith("--"))[2:]
        closed = (getattr(found, "__pydantic_config__", None) or {}).get("extra") == "forbid"
        yield name, {"class": found.__name__, "closed": closed}
        for field in dataclasses.fields(found):
            if field.init and getattr(field.default, "init", None) is not False:
                yield f"{name}.{field.name}", {"type": annotation(field.type)}


def _configuration(converter: Any) -> Any:
    """The class behind an option's converter, which keeps it as the default of an argument."""
    while converter is not None and getattr(converter, "__name__", "") != "parse_dataclass":
        converter = next((cell.cell_contents for cell in getattr(converter, "__closure__", None) or ()), None)
    return None if converter is None else converter.__defaults__[0]


def _rewrites(configuration: type) -> bool:
    decorators = getattr(configuration, "__pydantic_decorators__", None)
    validators = decorators.model_validators.values() if decorators else ()
    return any(validator.info.mode != "after" for validator in validators)


def annotation(hint: Any) -> str:
    """A type hint as today's Python spells it."""
    text = hint.__name__ if isinstance(hint, type) and not hasattr(hint, "__args__") else str(hint)
    return re.sub(r"Optional\[(.*)\]", r"\1 | None", text.replace("typing.", ""))


def plain(value: Any) -> Any:
    """A default as JSON can hold it; {} for a configuration object, which has defaults of its own."""
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return None if value is argparse.SUPPRESS else value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return {} if dataclasses.is_dataclass(value) else str(value)


def env_names(source: Path) -> Iterator[str]:
    """The keys of `environment_variables` in vllm/envs.py."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "environment_variables":
            assert isinstance(node.value, ast.Dict)
            yield from (ast.literal_eval(key) for key in node.value.keys if key)


def connector_names(source: Path) -> Iterator[str]:
    """The first argument of each KVConnectorFactory.register_connector."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "KVConnectorFactory.register_connector":
            yield ast.literal_eval(node.args[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
