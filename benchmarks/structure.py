"""Measure the structure of the package: modules from a record to the report, repeated names, lines.

python -m benchmarks.structure [--source src/tasktransfer] [--names]

Counts the modules through which a command of a design passes: those that the function that starts
it imports, and those that these modules import in turn. Imports inside functions count, and so does
a string that names a module of the package (a lazy import). Imports for types only do not count.
The commands are ``collect``, ``statistics``, ``figures`` and ``report``.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeGuard

PACKAGE = "tasktransfer"
SOURCE = Path(__file__).resolve().parents[1] / "src" / PACKAGE

FIELDS = {
    "collect": ("collect", "analysis"),
    "statistics": ("statistics", "analysis"),
    "figures": ("shown", "analysis"),
    "report": ("shown", "analysis"),
}
"""Command → fields of ``Design`` that say what the command does."""
COMMANDS = "cli.analyse"
"""Module with the function of each command. Imports inside it are of the command."""
FUNCTIONS = {
    "collect": "collect_tables",
    "statistics": "compute_statistics",
    "figures": "draw_study_figures",
    "report": "write_study_report",
}
"""Command → its function in ``COMMANDS``."""
BELOW_RECORDS = frozenset({"", "errors", "files", "core", "config", "tasks", "metrics", "datasets"})
BELOW_RECORDS |= {"data", "layers", "encoding", "models"}
"""Rooms that are imported by those that read records, and do not read any."""

Modules = Mapping[str, "Module"]


class Module(NamedTuple):
    """A module of the package. ``name``: dotted, without the package."""

    name: str
    file: Path
    tree: ast.Module

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]


def read_modules(source: Path = SOURCE) -> dict[str, Module]:
    """Read all modules of a package by their names."""
    modules = {}
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = Module(name, file, ast.parse(file.read_text(encoding="utf-8")))
    return modules


# --- imports ---


def find_imports(modules: Modules, node: ast.AST) -> set[str]:
    """Return the modules of the package that code imports, or names in a string.

    The package itself does not count: importing a module always imports it.
    """
    types_only = _find_types_only(node)
    return {
        target
        for inner in ast.walk(node)
        if id(inner) not in types_only
        for target in _list_targets(modules, inner)
    }


def _find_types_only(tree: ast.AST) -> set[int]:
    """Return the nodes that only a type checker reads. Lazy modules are imported later."""
    return {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        and "TYPE_CHECKING" in ast.unparse(node.test)
        and not _is_lazy(node)
        for inner in ast.walk(node)
    }


def _is_lazy(node: ast.AST) -> TypeGuard[ast.If]:
    """Return whether imports for a type checker have lazy modules as their alternative."""
    return (
        isinstance(node, ast.If)
        and "TYPE_CHECKING" in ast.unparse(node.test)
        and any("LazyPackage" in ast.unparse(line) for line in node.orelse)
    )


def _list_targets(modules: Modules, node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield from _resolve(modules, f"{node.module}.{alias.name}", node.module or "")
    elif isinstance(node, ast.Import):
        for alias in node.names:
            yield from _resolve(modules, alias.name)
    elif (target := find_lazy_target(modules, node)) is not None:
        yield target


def _resolve(modules: Modules, *names: str) -> Iterator[str]:
    """Yield the first of the dotted names that is a module of the package, without the package."""
    for name in names:
        package, _, below = name.partition(".")
        if package == PACKAGE and below in modules and below:
            yield below
            return


def find_lazy_target(modules: Modules, node: ast.AST) -> str | None:
    """Return the module that a string names (``"designs.panel.answer"``), or None.

    The string may begin with the package's name, and end with a name after a colon. A sentence
    about a config key, such as ``training.precision: ...``, does not name a module.
    """
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    name, colon, attribute = node.value.removeprefix(f"{PACKAGE}.").partition(":")
    named = "." in name and name in modules and (not colon or attribute.isidentifier())
    return name if named else None


def build_graph(modules: Modules) -> dict[str, set[str]]:
    """Return the modules that each module imports or names."""
    return {name: find_imports(modules, module.tree) for name, module in modules.items()}


def find_closure(graph: Mapping[str, set[str]], starts: Iterable[str]) -> set[str]:
    """Return modules, all modules that these import, and so on."""
    passed, waiting = set[str](), list(starts)
    while waiting:
        name = waiting.pop()
        if name not in passed:
            passed.add(name)
            waiting += graph[name]
    return passed


# --- from a record to the page ---


def find_designs(modules: Modules) -> dict[str, str]:
    """Return the module that declares each design, by the design's name."""
    parts = {name: name.split(".") for name in modules}
    return {
        folders[1]: name
        for name, folders in parts.items()
        if len(folders) == 3 and (folders[0], folders[2]) == ("designs", "design")
    }


def trace_commands(
    modules: Modules, graph: Mapping[str, set[str]], design: str
) -> dict[str, set[str]]:
    """Return the modules that each command of a design passes.

    Args:
        modules: all modules of the package.
        graph: their imports, from ``build_graph``.
        design: name of a design.

    Raises:
        ValueError: the design declares nothing for a command.
    """
    name = find_designs(modules)[design]
    declared = _read_declaration(modules[name].tree)
    passed = {}
    for command, fields in FIELDS.items():
        values = [declared[field] for field in fields if field in declared]
        if not values:
            raise ValueError(f"{name}: Design has no {' or '.join(fields)}. Update FIELDS.")
        starts = _find_command_imports(modules, command)
        passed[command] = find_closure(
            graph, starts.union(*(_find_start_imports(modules, name, value) for value in values))
        )
    return passed


def _read_declaration(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the keyword arguments of the module's call of ``Design``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Design":
            return {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    return {}


def _find_command_imports(modules: Modules, command: str) -> set[str]:
    """Return the modules imported by the functions that a command imports when it runs."""
    function = _read_definitions(modules[COMMANDS].tree)[FUNCTIONS[command]]
    imported = _read_imported(modules, function)
    return set().union(*(_find_used_imports(modules, *place) for place in imported.values()))


def _find_start_imports(modules: Modules, name: str, value: ast.expr) -> set[str]:
    """Return the modules imported by a function that a declaration names.

    Args:
        modules: all modules of the package.
        name: module of the declaration.
        value: ``function``, ``module.function``, or another expression.
    """
    imported = _read_imported(modules, modules[name].tree)
    owner, _, attribute = ast.unparse(value).rpartition(".")
    if owner in imported:
        return _find_used_imports(modules, imported[owner][0], attribute)
    return _find_used_imports(modules, *imported.get(attribute, (name, value)))


def _find_used_imports(modules: Modules, name: str, used: str | ast.AST) -> set[str]:
    """Return the modules imported by code of a module, and by what this code uses of the module.

    Args:
        modules: all modules of the package.
        name: the module.
        used: a name that it defines, or an expression in it. Another name stands for all of it.
    """
    tree = modules[name].tree
    definitions, imported = _read_definitions(tree), _read_imported(modules, tree)
    start = definitions.get(used) if isinstance(used, str) else used
    if start is None:
        return {name}
    found, seen, waiting = set[str](), set[str](), [start]
    while waiting:
        node = waiting.pop()
        found |= find_imports(modules, node)
        names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} - seen
        seen |= names
        waiting += [definitions[each] for each in names & definitions.keys()]
        found |= {imported[each][0] for each in names & imported.keys()}
    return found


def _read_definitions(tree: ast.Module) -> dict[str, ast.AST]:
    """Return functions, classes and assigned values at the top of a module."""
    definitions: dict[str, ast.AST] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            definitions[node.name] = node
        elif isinstance(node, ast.Assign):
            definitions |= {t.id: node.value for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            definitions[node.target.id] = node.value
    return definitions


def _read_imported(modules: Modules, node: ast.Module | ast.AST) -> dict[str, tuple[str, str]]:
    """Return imported name → its module, and its name there, for lazy and direct imports."""
    imported = {}
    body = [*getattr(node, "body", ())]
    for statement in body + [line for part in body if _is_lazy(part) for line in part.body]:
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                for target in _list_targets(modules, ast.ImportFrom(statement.module, [alias], 0)):
                    imported[alias.asname or alias.name] = (target, alias.name)
    return imported


def count_after_records(names: Iterable[str]) -> int:
    """Count modules in rooms that read records."""
    return sum(name.partition(".")[0] not in BELOW_RECORDS for name in names)


# --- types, names and lines ---


def count_untyped_dictionaries(modules: Modules) -> int:
    """Count ``dict[str, Any]`` in the code, where a type could name the keys."""
    return sum(
        isinstance(node, ast.Subscript) and ast.unparse(node) == "dict[str, Any]"
        for module in modules.values()
        for node in ast.walk(module.tree)
    )


def find_lazy_names(modules: Modules) -> list[tuple[str, str]]:
    """Return (module, call) for each call whose first argument names a module in a string."""
    calls = []
    for module in modules.values():
        assigned = _read_assigned(module.tree)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and node.args:
                first = assigned.get(ast.unparse(node.args[0]), node.args[0])
                if find_lazy_target(modules, first) is not None:
                    calls.append((module.name, ast.unparse(node)))
    return calls


def _read_assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """Return name → value of all assignments in a module, also of one tuple to several names."""
    pairs: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    names = map(ast.unparse, target.elts)
                    pairs |= dict(zip(names, node.value.elts, strict=False))
                else:
                    pairs[ast.unparse(target)] = node.value
    return pairs


def find_repeated(
    modules: Modules, kind: type[ast.ClassDef | ast.FunctionDef]
) -> dict[str, list[str]]:
    """Return names that several modules define at their top, with these modules."""
    places: dict[str, list[str]] = {}
    for module in modules.values():
        for name in sorted({node.name for node in module.tree.body if isinstance(node, kind)}):
            places.setdefault(name, []).append(module.name)
    return {name: where for name, where in places.items() if len(where) > 1}


def count_code_lines(module: Module) -> int:
    """Count the lines that hold a token and are neither docstring nor comment."""
    text = module.file.read_text(encoding="utf-8")
    documented = {
        number
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    lines = {
        number
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in (*layout, tokenize.ENDMARKER)
        for number in range(token.start[0], token.end[0] + 1)
    }
    return len(lines - documented)


def count_lines(modules: Modules) -> dict[str, tuple[int, int, int]]:
    """Return room → number of files, lines and code lines. Each design is a room."""
    rooms: dict[str, tuple[int, int, int]] = {}
    for module in modules.values():
        depth = 2 if module.room == "designs" and module.name.count(".") > 1 else 1
        room = "/".join(module.name.split(".")[:depth]) or "(package)"
        files, lines, code = rooms.get(room, (0, 0, 0))
        text = module.file.read_text(encoding="utf-8")
        rooms[room] = (files + 1, lines + text.count("\n"), code + count_code_lines(module))
    return rooms


def print_structure(modules: Modules, with_names: bool) -> None:
    """Print all measures of a package."""
    graph = build_graph(modules)
    print("modules from a record to the page (all / in rooms that read records / the design's own)")
    for design in find_designs(modules):
        commands = trace_commands(modules, graph, design)
        commands["together"] = set[str]().union(*commands.values())
        counts = []
        for command, passed in commands.items():
            own = sum(name.startswith(f"designs.{design}.") for name in passed)
            counts.append(f"{command} {len(passed)} / {count_after_records(passed)} / {own}")
        print(f"  {design}: {', '.join(counts)}")
        if with_names:
            print("   ", " ".join(sorted(commands["together"])))
    print(f"dictionaries without a type, dict[str, Any]: {count_untyped_dictionaries(modules)}")
    print(f"calls that name a module in a string: {len(find_lazy_names(modules))}")
    for kind, title in ((ast.ClassDef, "classes"), (ast.FunctionDef, "functions")):
        repeated = find_repeated(modules, kind)
        public = sum(not name.startswith("_") for name in repeated)
        print(f"names of {title} in several modules: {len(repeated)}, {public} of them public")
        for name, where in sorted(repeated.items()) if with_names else ():
            print(f"  {name}: {' '.join(where)}")
    rooms = count_lines(modules)
    rooms["all"] = tuple(map(sum, zip(*rooms.values(), strict=True)))  # type: ignore[assignment]
    print(f"{'room':<24}{'files':>8}{'lines':>8}{'code':>8}")
    for room, row in rooms.items():
        print(f"{room:<24}" + "".join(f"{count:>8,}" for count in row))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--source", type=Path, default=SOURCE, help="folder of the package")
    parser.add_argument("--names", action="store_true", help="print modules and repeated names")
    chosen = parser.parse_args(arguments)
    print_structure(read_modules(chosen.source), chosen.names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
