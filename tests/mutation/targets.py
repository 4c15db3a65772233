"""Which functions are mutated: the rules, and the helpers beside them."""

from __future__ import annotations
import __future__

import ast
import importlib
import inspect
import pkgutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vllm_phases.rules import registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FunctionType, ModuleType

    from tests.mutation.mutations import Mutation

FRAME = ("documentation", "origin", "registry", "selection")
"""Modules of the package that are no part of any rule."""


@dataclass(frozen=True)
class Target:
    """A function at the top of a module; rule_id is "" of a helper, and lines are those of the module."""

    rule_id: str
    lines: tuple[str, ...]
    module: ModuleType
    function: FunctionType
    tree: ast.FunctionDef

    @property
    def file(self) -> str:
        """As frames of the running function name it."""
        return self.function.__code__.co_filename

    @property
    def owner(self) -> str:
        """The rule, or the module and the helper."""
        return self.rule_id or f"{Path(self.file).name}:{self.tree.name}"

    def install(self, mutation: Mutation) -> None:
        """Change the function for everyone who holds it, and forget what its module has cached."""
        mutation.apply(self.tree)
        self.tree.decorator_list = []
        flags = __future__.annotations.compiler_flag
        code = compile(ast.Module([self.tree], []), self.file, "exec", flags, dont_inherit=True)
        defined: dict[str, FunctionType] = {}
        exec(code, self.function.__globals__, defined)
        self.function.__code__ = defined[self.tree.name].__code__
        forget(self.module)


def targets(package: str, selected: Sequence[str]) -> list[Target]:
    """The functions of a package's modules that are selected by the beginning of a rule id or by module."""
    folder = importlib.import_module(package)
    names = [found.name for found in pkgutil.iter_modules(folder.__path__) if found.name not in FRAME]
    modules = [importlib.import_module(f"{package}.{name}") for name in names]
    found = [target for module in modules for target in _functions(module)]
    return [target for target in found if target.owner.startswith(tuple(selected))]


def forget(module: ModuleType) -> None:
    """Empty every cache of a module's functions."""
    for value in vars(module).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def _functions(module: ModuleType) -> Iterator[Target]:
    ids = {rule.check: rule.id for rule in registry.registered()}
    source = inspect.getsource(module)
    lines = tuple(source.splitlines())
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.FunctionDef):
            function = inspect.unwrap(getattr(module, statement.name))
            yield Target(ids.get(function, ""), lines, module, function, statement)
