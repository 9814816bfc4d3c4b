"""Small changes of the code of functions, as a mistake would make them: does a test notice?

A mutant is a function with another comparison, condition, number, sign or order of arguments, or without a
statement. What errors say is left alone, as are annotations and what runs when a module is imported.
"""

from __future__ import annotations

import ast
import copy
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final

_COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class CodeMutant:
    """A change: the file, the outermost function in which it is, and the place among all changes of it."""

    path: str
    function: str
    place: int
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function}: {self.before} -> {self.after}"


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """The outermost functions and methods, with qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _FUNCTIONS):
            yield prefix + node.name, node  # type: ignore[misc]
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")


def mutants(root: Path, path: str) -> list[CodeMutant]:
    """All mutants of a file."""
    found = []
    for name, function in functions(ast.parse((root / path).read_text())):
        for place, (node, changed) in enumerate(_changes(function)):
            before, after = (" ".join(ast.unparse(each).split())[:90] for each in (node, changed))
            found.append(CodeMutant(path, name, place, node.lineno, before, after or "pass"))  # type: ignore[attr-defined]
    return found


def _changes(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Nodes of the function, and what replaces each."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    for statement in body:
        yield from _changes_of(statement)


def _changes_of(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    for changed in _instead_of(node):
        yield node, ast.copy_location(changed, node)
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "args") and isinstance(node, _FUNCTIONS):
            continue
        if name == "annotation":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes_of(child)


def _instead_of(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(ops=[first, *rest]):
            yield ast.Compare(node.left, [_COMPARED[type(first)](), *rest], node.comparators)
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.BinOp() if type(node.op) in _COMPUTED:
            yield ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right)
        case ast.Call(args=[first, second, *more]) if not any(
            isinstance(each, ast.Starred) for each in (first, second)
        ):
            yield ast.Call(node.func, [second, first, *more], node.keywords)
        case ast.If() | ast.IfExp() | ast.While():
            changed = copy.copy(node)
            changed.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
            yield changed
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()


def apply(root: Path, mutant: CodeMutant) -> bool:
    """Change the function in this process, where its module is imported; False if it was not found."""
    source = str(root / mutant.path)
    tree = ast.parse(Path(source).read_text())
    function = dict(functions(tree))[mutant.function]
    node, changed = list(_changes(function))[mutant.place]
    _Replaced(node, changed).visit(function)
    module = compile(ast.fix_missing_locations(tree), source, "exec")
    new = {code.co_qualname: code for code in _codes(module)}[mutant.function]
    applied = False
    gc.unfreeze()  # tests freeze what is loaded, which hides it
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename == source:
            old = each.__code__
            if old.co_qualname == mutant.function and old.co_freevars == new.co_freevars:
                each.__code__ = new
                applied = True
    return applied


class _Replaced(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else self.generic_visit(node)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
