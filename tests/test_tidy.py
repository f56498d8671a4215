"""The house rules that a test can keep: import directions, lengths, docstrings, no machine's paths, plain pins."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("drills", "fakes", "reports", "scoring")
MAY_IMPORT = {
    "drills": {"drills", "fakes", "reports", "scoring"},
    "reports": {"reports", "scoring"},
    "fakes": {"fakes", "scoring"},
    "scoring": {"scoring"},
}
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
EVERYTHING = sorted(
    path
    for folder in (*PACKAGES, "tests", "bench", "docs", "examples", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
)
FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 400


def name_of(path: Path) -> str:
    """Path below the repo's root."""
    return str(path.relative_to(ROOT))


def imports(tree: ast.AST) -> Iterator[str]:
    """Full names of all modules that a module imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down_only(path: Path) -> None:
    """Hazard: scoring that reaches for a clock, or a fake that knows a verdict."""
    package = path.relative_to(ROOT).parts[0]
    found = list(imports(ast.parse(path.read_text())))
    ours = {name.partition(".")[0] for name in found} & set(PACKAGES)
    assert ours <= MAY_IMPORT[package]
    if package == "fakes":
        assert {name for name in found if name.startswith("scoring")} <= {
            "scoring",
            "scoring.history",
            "scoring.journal",
        }
    if package == "scoring" and path.name != "journal.py":
        impure = {"os", "time", "subprocess", "socket", "threading", "pathlib", "random", "asyncio", "datetime"}
        assert not impure & {name.partition(".")[0] for name in found}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_say_what_they_are_for_and_stay_one_idea(path: Path) -> None:
    """Hazard: a drawer that everything is put into."""
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)), "no module docstring"
    assert text.count("\n") <= MODULE_LINES_MAX


@pytest.mark.parametrize("path", [*MODULES, *sorted((ROOT / "tests").rglob("*.py"))], ids=name_of)
def test_functions_can_be_read_at_a_glance(path: Path) -> None:
    """Hazard: a check that nobody can hold against its clause."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("test_*.py")), ids=name_of)
def test_tests_say_their_hazard_and_do_not_sleep(path: Path) -> None:
    """Hazard: a test that nobody can tell the purpose of, or that is right only on a fast machine."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"
            slept = re.search(r"(time|asyncio)\.sleep\((?!0\))", ast.unparse(node))
            assert not slept, f"{node.name} sleeps instead of waiting for the event"


def test_tests_mirror_the_packages() -> None:
    """Hazard: a test that nobody finds beside the code it is about."""
    folders = {path.parent.relative_to(ROOT / "tests").parts[:1] for path in (ROOT / "tests").rglob("test_*.py")}
    assert folders <= {(), *((package,) for package in PACKAGES)}


def test_nothing_names_a_machine_or_a_registry() -> None:
    """Hazard: a clone that works only where it was written."""
    machine = re.compile(r"(?<![\w.])/(work|root|home)/\w")
    for path in EVERYTHING:
        if path.suffix in (".py", ".toml", ".md", ".html", ".j2", ".txt") or path.parent.name == ".ci":
            assert not machine.search(path.read_text(encoding="utf-8")), name_of(path)
    assert "://" not in (ROOT / "constraints.txt").read_text()
