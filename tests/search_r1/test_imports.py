"""The import rules of the three packages, read from their source: nothing is imported here."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("search_r1", "retrieval_server", "data_prep")

HEAVY = {"torch", "ray", "verl", "vllm", "transformers", "sentence_transformers"}
CORE = {
    "search_r1.prompts": set[str](),
    "search_r1.actions": {"search_r1.prompts"},
    "search_r1.passages": set[str](),
    "search_r1.replicas": set[str](),
    "search_r1.retrieval_failures": {"httpx"},
    "search_r1.retriever": {
        "httpx",
        "tenacity",
        "search_r1.passages",
        "search_r1.prompts",
        "search_r1.replicas",
        "search_r1.retrieval_failures",
    },
    "search_r1.observation": {"search_r1.passages", "search_r1.prompts"},
    "search_r1.trajectory": set[str](),
    "search_r1.settings": {"search_r1.retriever", "search_r1.trajectory"},
    "search_r1.result": {"search_r1.actions", "search_r1.passages", "search_r1.trajectory"},
    "search_r1.rollout": {
        "search_r1.actions",
        "search_r1.observation",
        "search_r1.passages",
        "search_r1.prompts",
        "search_r1.result",
        "search_r1.retriever",
        "search_r1.settings",
        "search_r1.trajectory",
    },
    "search_r1.qa_metrics": set[str](),
    "search_r1.rewards": {"search_r1.prompts", "search_r1.qa_metrics"},
}
"""What each module of the rollout may import beyond the standard library, and nothing else."""


@dataclass(frozen=True)
class Import:
    importer: str
    imported: str
    lazy: bool
    """Inside a function, so only when it is called."""

    @property
    def package(self) -> str:
        return self.imported.partition(".")[0]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_in(path: Path) -> Iterator[Import]:
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    yield from _imports(ast.parse(path.read_text()), name, package, lazy=False)


def _imports(node: ast.AST, name: str, package: str, *, lazy: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(name, alias.name, lazy) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - child.level + 1]
            prefix = ".".join(above) if child.level else ""
            module = ".".join(part for part in (prefix, child.module) if part)
            # `from search_r1 import rollout` names a module, `from x import name` may not.
            inner = [f"{module}.{alias.name}" for alias in child.names]
            are_modules = [(ROOT / i.replace(".", "/")).with_suffix(".py").exists() for i in inner]
            for imported, is_module in zip(inner, are_modules, strict=True):
                yield Import(name, imported if is_module else module, lazy)
        else:
            in_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _imports(child, name, package, lazy=lazy or in_function)


FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
IMPORTS = [found for path in FILES for found in imports_in(path)]


def importers(*packages: str) -> set[str]:
    return {found.importer for found in IMPORTS if found.package in packages}


def test_all_three_packages_are_read() -> None:
    assert {module_name(path).partition(".")[0] for path in FILES} == set(PACKAGES)


def test_only_the_border_of_the_package_imports_verl() -> None:
    allowed = {
        "search_r1.agent_loop",
        "search_r1.policy_loss",
        "search_r1.train",
        "search_r1.platform",
    }
    others = importers("verl") - allowed
    assert {name for name in others if not name.startswith("search_r1.platform.")} == set()


def test_the_two_sides_of_the_wire_share_no_code() -> None:
    # The command line starts the server, so it alone knows both, and only once it is asked to.
    crossing = [
        found
        for found in IMPORTS
        if {found.importer.partition(".")[0], found.package} == {"search_r1", "retrieval_server"}
    ]
    assert [f for f in crossing if not (f.importer == "search_r1.cli" and f.lazy)] == []


def test_no_module_imports_scripts_or_tests() -> None:
    # verl's wheel installs top-level packages of these names.
    assert importers("scripts", "tests") == set()


def test_the_command_line_loads_nothing_heavy_before_it_is_asked_to() -> None:
    modules = ("search_r1.cli", "data_prep.cli")
    eager = [f for f in IMPORTS if f.importer in modules and f.package in HEAVY and not f.lazy]
    assert eager == []


@pytest.mark.parametrize("module", CORE)
def test_a_module_of_the_rollout_imports_what_it_may_and_no_more(module: str) -> None:
    imported = {found.imported for found in IMPORTS if found.importer == module}
    standard = {name for name in imported if name.partition(".")[0] in sys.stdlib_module_names}
    assert imported - standard <= CORE[module]


@pytest.mark.parametrize("module", CORE)
def test_what_the_rollout_needs_is_never_heavy(module: str) -> None:
    reached, waiting = set[str](), [module]
    while waiting:
        current = waiting.pop()
        if current not in reached:
            reached.add(current)
            waiting += [found.imported for found in IMPORTS if found.importer == current]
    assert {name.partition(".")[0] for name in reached} & HEAVY == set()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a.b, c", {("a.b", False), ("c", False)}),
        ("from a import b", {("a", False)}),
        ("from search_r1 import prompts", {("search_r1.prompts", False)}),
        ("from . import prompts", {("search_r1.prompts", False)}),
        ("from .prompts import Tag", {("search_r1.prompts", False)}),
        ("def f():\n    import a", {("a", True)}),
        ("if x:\n    import a", {("a", False)}),
    ],
)
def test_imports_are_found_in_every_form(source: str, expected: set[tuple[str, bool]]) -> None:
    found = _imports(ast.parse(source), "search_r1.x", "search_r1", lazy=False)
    assert {(one.imported, one.lazy) for one in found} == expected
