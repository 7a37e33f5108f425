"""Measures of the project's English: how docstrings begin, how functions are named, and how often
phrases of its former dialect occur."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

QUESTION_WORDS = frozenset({"what", "whether", "how", "which", "where", "why", "who"})
PREFIXES = frozenset({"is", "has", "can", "to", "from", "as"})
"""First words of names of predicates and conversions."""
_VERBS = """
add align allow append apply assemble assert assign attach average begin bound break build cache
calibrate call cast change check choose clean clear close collect combine compare compile
complete compress compute configure connect convert copy correct count create cut decode define
delete derive describe detect discard divide download draw drop emit encode end ensure enumerate
escape estimate evaluate exclude execute expand explain export extract fetch fill filter find
fit fix flatten flush fold follow forecast forget format freeze gather generate get give group
guess handle hash hide hold import include index infer initialise insert inspect install
interpolate invert iterate join judge keep label launch let limit list load locate lock log look
make map mark mask match measure merge mount move name normalise note observe offer omit open
order pack pad parse pass pick place plan plot pool predict prepare print probe process prompt
propose prune put quote raise rank rate read rebuild recommend recompute record recover reduce
refresh refuse register release remember remove rename render repeat replace report request
require resample reset resolve restore resume retry return reuse rewrite round run sample save
scale schedule score scramble search select send serve set share shift show shuffle sign
simulate skip sort split stack start stop store stream strip submit subtract sum summarise swap
switch take tally tell test tie tokenise trace track train transform translate trim truncate try
turn unfreeze unpack update upgrade use validate verify visit wait walk warn weigh work wrap
write yield
"""
VERBS = frozenset(word for line in _VERBS.splitlines() for word in line.split())
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _nodes() -> Iterator[tuple[Path, ast.AST]]:
    """Yield every node of src's syntax trees, with its file."""
    for file, tree in _trees():
        for node in ast.walk(tree):
            yield file, node


@cache
def _trees() -> tuple[tuple[Path, ast.AST], ...]:
    gc.disable()  # it would look through a million nodes again and again
    try:
        files = sorted(SOURCE.rglob("*.py"))
        return tuple((file, ast.parse(file.read_text("utf-8"))) for file in files)
    finally:
        gc.freeze()
        gc.enable()


@cache
def functions() -> tuple[tuple[Path, Function], ...]:
    """Return every function of src that is not a property, with its file."""
    return tuple(
        (file, node)
        for file, node in _nodes()
        if isinstance(node, Function) and not _is_property(node)
    )


def imperative_share() -> float:
    """Return the fraction of function docstrings that begin with a verb."""
    words = [_first_word(text) for _, node in functions() if (text := ast.get_docstring(node))]
    return sum(word in VERBS for word in words) / len(words)


def find_questions() -> list[str]:
    """Return the docstrings in src, of attributes and properties too, that begin with a question
    word, each with its file."""
    return [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.value.value[:60]}"
        for file, node in _nodes()
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and _first_word(node.value.value) in QUESTION_WORDS
    ]


def verb_first_share() -> float:
    """Return the fraction of function names that begin with a verb or with is, has, can, to, from
    and as."""
    names = [node.name for _, node in functions() if not node.name.startswith("__")]
    first = [name.strip("_").split("_")[0] for name in names]
    return sum(word in VERBS | PREFIXES for word in first) / len(first)


def find_phrases(pattern: str) -> list[str]:
    """Return the matches of a pattern in pages, docstrings, messages and help texts, each with its
    file and the words around it."""
    return [
        f"{file.relative_to(ROOT)}: …{text[max(match.start() - 40, 0) : match.end() + 40]}…"
        for file, text in _texts()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


@cache
def _texts() -> tuple[tuple[Path, str], ...]:
    return (*_pages(), *_docstrings_and_messages())


def _pages() -> Iterator[tuple[Path, str]]:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        if not {"decisions", "development"} & set(page.parts):
            yield page, re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)


def _docstrings_and_messages() -> Iterator[tuple[Path, str]]:
    for file, node in _nodes():
        if isinstance(node, ast.Module | ast.ClassDef | Function):
            yield file, ast.get_docstring(node) or ""
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from ((file, _literal(part)) for part in node.exc.args)
        elif isinstance(node, ast.Call):
            help_texts = [k.value for k in node.keywords if k.arg == "help"]
            yield from ((file, _literal(part)) for part in help_texts)


def _literal(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            _literal(part) if isinstance(part, ast.Constant) else "…" for part in node.values
        )
    return ""


def _first_word(text: str) -> str:
    return re.sub(r"\W", "", text.split(maxsplit=1)[0]).lower()


def _is_property(node: Function) -> bool:
    names = {getattr(d, "id", getattr(d, "attr", "")) for d in node.decorator_list}
    return bool(names & {"property", "cached_property"})


@cache
def _classes() -> dict[str, list[ast.ClassDef]]:
    """Return name → definitions, of the classes at the top level of src's modules."""
    classes: dict[str, list[ast.ClassDef]] = {}
    for _, tree in _trees():
        for node in ast.iter_child_nodes(tree):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(node)
    return classes


@cache
def list_members(name: str) -> frozenset[str]:
    """Return the attributes and methods of a class of src and of its bases; empty without one."""
    members: set[str] = set()
    for node in _classes().get(name, []):
        bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
        members.update(*map(list_members, bases))
        for part in ast.walk(node):
            if isinstance(part, Function):
                members.add(part.name)
            elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                members.add(part.target.id)
            elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                members.add(part.attr)
    return frozenset(members)
