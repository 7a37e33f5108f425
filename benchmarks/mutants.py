"""Mutants: functions of the package with one changed operator, condition, constant or statement.

A mutant replaces the code of a function in the running process. Therefore no module is imported
again, and testing a mutant takes as long as its tests. Code outside functions is not changed.
``benchmarks.redundant_tests`` runs tests against mutants.
"""

from __future__ import annotations

import ast
import gc
import inspect
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
"""Operator → the operator that replaces it."""

Key = tuple[str, str, int]
"""File, qualified name and first line of a function."""


@dataclass(frozen=True)
class Mutant:
    """A change of a module. ``place``: number of the changed node in the walk of its tree."""

    file: str
    place: int
    line: int
    statement: int
    change: str

    @property
    def name(self) -> str:
        """Name for reports."""
        return f"{self.file}:{self.line} {self.change} #{self.place}"


def list_mutants(file: str) -> list[Mutant]:
    """Return every mutant of a file below ``src``."""
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    skipped = {id(inner) for node in _list_skipped(tree) for inner in ast.walk(node)}
    statements = _map_statements(tree)
    return [
        Mutant(file, place, line, statements.get(id(node), line), change)
        for place, node in enumerate(ast.walk(tree))
        if id(node) not in skipped
        and (line := getattr(node, "lineno", 0))
        and (change := _mutate_node(node))
    ]


def build_mutant_tree(mutant: Mutant) -> ast.Module:
    """Return the tree of a mutant's module."""
    tree = ast.parse((SOURCE / mutant.file).read_text(encoding="utf-8"))
    _mutate_node([*ast.walk(tree)][mutant.place])
    return ast.fix_missing_locations(tree)


def _list_skipped(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield annotations and docstrings."""
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if (found := getattr(node, name, None)) is not None:
                yield found
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _map_statements(tree: ast.AST) -> dict[int, int]:
    """Return the first line of the innermost statement around each node."""
    found: dict[int, int] = {}
    for node in ast.walk(tree):  # breadth first: inner statements overwrite outer ones
        if isinstance(node, ast.stmt):
            found |= dict.fromkeys(map(id, ast.walk(node)), node.lineno)
    return found


def _mutate_node(node: ast.AST) -> str | None:
    """Change a node in place, and return a description, or None if it has no mutation."""
    match node:
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPPED:
            node.op = SWAPPED[type(op)]()  # type: ignore[assignment]
            return f"{type(op).__name__} to {type(node.op).__name__}"
        case ast.Compare(ops=[op]) if type(op) in SWAPPED:
            node.ops = [SWAPPED[type(op)]()]  # type: ignore[list-item]
            return f"{type(op).__name__} to {type(node.ops[0]).__name__}"
        case ast.If() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
            return "negated condition"
        case ast.UnaryOp(op=ast.USub()):
            node.op = ast.UAdd()
            return "USub to UAdd"
        case ast.Constant(value=bool() as value):
            node.value = not value
            return f"{value} to {node.value}"
        case ast.Constant(value=int() | float() as number):
            node.value = number + 1
            return f"{number} to {node.value}"
        case ast.Constant(value=str() as text):
            node.value = f"{text}~"
            return "changed text"
        case ast.Expr(value=ast.Call()):
            node.value = ast.Constant(None)
            return "call left out"
        case ast.Raise(exc=ast.expr()):
            node.exc = ast.Call(ast.Name("AssertionError", ast.Load()), [], [])
            node.cause = None
            return "another error"
    return None


# --- code of the running process ------------------------------------------------------------------


def find_functions() -> dict[Key, list[FunctionType]]:
    """Return the functions below ``src`` that this process has."""
    found: dict[Key, list[FunctionType]] = defaultdict(list)
    for each in gc.get_objects():
        if type(each) is FunctionType:
            code = each.__code__
            if code.co_filename.startswith(str(SOURCE)):
                found[code.co_filename, code.co_qualname, code.co_firstlineno].append(each)
    return found


def compile_mutant(mutant: Mutant) -> tuple[Key, CodeType] | None:
    """Return the changed function and its code, or None if the change is not in a function."""
    path = str(SOURCE / mutant.file)
    before = compile((SOURCE / mutant.file).read_text(encoding="utf-8"), path, "exec")
    after = compile(build_mutant_tree(mutant), path, "exec")
    changed = [
        ((path, old.co_qualname, old.co_firstlineno), new)
        for old, new in zip(_list_code(before), _list_code(after), strict=True)
        if old != new
    ]
    return changed[0] if len(changed) == 1 else None


def _list_code(module: CodeType) -> Iterator[CodeType]:
    """Yield the code of functions and methods, but not of functions inside them."""
    for code in module.co_consts:
        if isinstance(code, CodeType):
            if code.co_flags & inspect.CO_OPTIMIZED:
                yield code
            else:  # the body of a class
                yield from _list_code(code)
