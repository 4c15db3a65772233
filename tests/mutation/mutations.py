"""What is changed in a function: its body is removed, or one of its conditions decides otherwise."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Function: TypeAlias = ast.FunctionDef
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_NEIGHBOUR: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_JUMPS = (ast.Return, ast.Continue, ast.Break, ast.Raise)


@dataclass(frozen=True)
class Mutation:
    """One node of a function and what stands in its place."""

    node: ast.stmt | ast.expr
    replacement: ast.stmt | ast.expr

    @property
    def lines(self) -> range:
        """The lines on which the node is evaluated; of a statement with a block, those of its head."""
        head = self.node.test if isinstance(self.node, ast.If) else self.node
        return range(self.node.lineno, (head.end_lineno or head.lineno) + 1)

    def apply(self, function: Function) -> None:
        """Change the function's tree for good."""
        ast.fix_missing_locations(_Replacing(self.node, self.replacement).visit(function))

    def shown(self, lines: Sequence[str]) -> tuple[str, str]:
        """The first line of the node as it is written and as it would be, out of the lines of the module."""
        line = lines[self.node.lineno - 1].encode()
        before, after = line[: self.node.col_offset], line[self.node.end_col_offset :]
        one_line = self.node.end_lineno == self.node.lineno
        new = before.decode() + ast.unparse(self.replacement) + (after.decode() if one_line else "")
        return line.decode().strip(), " ".join(new.split())


def removed_body(function: Function) -> Mutation | None:
    """Nothing but the docstring, and no result; None where there is no body to remove."""
    body = [statement for statement in function.body if not _is_docstring(statement)]
    (nothing,) = ast.parse("return iter(())").body
    if ast.dump(body[0]) == ast.dump(nothing):
        return None
    # What follows is never reached, but keeps a generator a generator.
    generator = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _walk(body))
    return Mutation(body[0], ast.Return() if generator else nothing)


def mutated_conditions(function: Function) -> Iterator[Mutation]:
    """Every single change to what the function decides, each once."""
    seen = set()
    for mutation in _conditions(function):
        key = (id(mutation.node), ast.dump(mutation.replacement))
        if key not in seen:
            seen.add(key)
            yield mutation


def _conditions(function: Function) -> Iterator[Mutation]:
    for node in _walk(function.body):
        for test in _tests(node):
            yield Mutation(test, _negated(test))
            yield from _constants(test)
        if isinstance(node, ast.BoolOp):
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield Mutation(node, ast.BoolOp(other, node.values))
            for value in node.values:  # a bare constant is a default and decides nothing
                yield from () if isinstance(value, ast.Constant) else _constants(value)
        if isinstance(node, ast.Compare):
            yield from _comparisons(node)
            yield from _constants(node)
        if isinstance(node, ast.If) and isinstance(node.body[0], _JUMPS) and not node.orelse:
            yield Mutation(node, ast.Pass())


def _tests(node: ast.AST) -> list[ast.expr]:
    """The conditions of a statement or expression."""
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return [node.test]
    return node.ifs if isinstance(node, ast.comprehension) else []


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        return ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


def _comparisons(node: ast.Compare) -> Iterator[Mutation]:
    for index, operator in enumerate(node.ops):
        other = {**_OPPOSITE, **_NEIGHBOUR}[type(operator)]()
        yield Mutation(
            node, ast.Compare(node.left, [*node.ops[:index], other, *node.ops[index + 1 :]], node.comparators)
        )


def _constants(condition: ast.expr) -> Iterator[Mutation]:
    """Numbers one higher, texts with a character more, truths turned round."""
    for node in _walk([condition]):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool):
                yield Mutation(node, ast.Constant(not node.value))
            elif isinstance(node.value, int | float):
                yield Mutation(node, ast.Constant(node.value + 1))
            elif isinstance(node.value, str):
                yield Mutation(node, ast.Constant(node.value + "~"))


def _walk(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Every node below, but for the parts of f-strings and the keys of subscripts."""
    for node in nodes:
        yield node
        if isinstance(node, ast.Subscript):
            yield from _walk([node.value])
        elif not isinstance(node, ast.JoinedStr):
            yield from _walk(list(ast.iter_child_nodes(node)))


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class _Replacing(ast.NodeTransformer):
    def __init__(self, node: ast.AST, replacement: ast.AST) -> None:
        self._node, self._replacement = node, replacement

    def visit(self, node: ast.AST) -> ast.AST:
        return self._replacement if node is self._node else self.generic_visit(node)
