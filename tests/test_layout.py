"""The ground that everything stands on: where files are, what imports what, how big a file gets.

ADR 0001 tells why each of these can break in silence.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import grimp
import pytest

import spak
from process_kit import WAIT_S

ROOT = Path(__file__).resolve().parents[1]
SPAK = ROOT / "agents" / "spak"
MODULES = sorted(SPAK.rglob("*.py"))
WEB_MODULES = sorted(
    path for path in (ROOT / "platform/spakweb").rglob("*.py") if "migrations" not in path.parts
)
BIN = Path(sys.executable).parent

SOURCE_ROOTS = ("platform", "agents", "specs", "sandbox", "tests")
PURE = ("kernel", "program", "lang", "records", "shell", "patch", "paths", "canon")
IMPURE_MODULES = {
    "time",
    "random",
    "os",
    "subprocess",
    "logging",
    "socket",
    "threading",
    "datetime",
    "secrets",
}
HEAVY = ("django", "lark", "numpy", "re2", "rich", "pynvml")

LONGEST = 500
MOST_MODULES = 24
LONG_FOR_A_REASON: dict[str, str] = {}
"""Path below the repository to the one idea that makes a file longer than LONGEST lines."""


def module_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False)


@pytest.mark.parametrize("name", SOURCE_ROOTS)
def test_a_source_root_is_not_a_package(name: str) -> None:
    assert (ROOT / name).is_dir()
    assert not (ROOT / name / "__init__.py").exists()


def test_platform_is_still_the_standard_librarys() -> None:
    done = run(sys.executable, "-c", "import platform, uuid; print(platform.system(), platform.__file__)")
    assert done.returncode == 0, done.stderr
    assert str(ROOT / "platform") not in done.stdout


def test_ruff_would_flag_a_package_called_platform(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    (tmp_path / "platform").mkdir()
    (tmp_path / "platform" / "__init__.py").write_text('"""The trap of ADR 0001."""\n')
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "A005" in done.stdout


def test_importing_spak_and_its_command_is_light() -> None:
    code = "import sys, spak, spak.cli; print(*sorted(name for name in sys.modules if '.' not in name))"
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert not set(done.stdout.split()) & set(HEAVY)


@pytest.mark.parametrize("name", PURE)
def test_the_pure_core_asks_nobody(name: str) -> None:
    """Imports inside functions count as well; import-linter sees only whole modules of ours."""
    files = [SPAK / f"{name}.py"] if (SPAK / f"{name}.py").exists() else sorted((SPAK / name).rglob("*.py"))
    assert files
    for path in files:
        assert not imported(path) & IMPURE_MODULES, module_id(path)


def imported(path: Path) -> set[str]:
    """The top-level names of the modules that a file imports, at whatever depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_the_import_contracts_hold() -> None:
    done = run(str(BIN / "lint-imports"), "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_the_command_prints_its_version() -> None:
    done = run(str(BIN / "spak"), "--version")
    assert done.returncode == 0, done.stderr
    assert spak.__version__ in done.stdout


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert len(docstring.split()) > 1


def test_files_stay_short() -> None:
    tracked = [*MODULES, *WEB_MODULES, *(ROOT / "bench").glob("*.py"), *(ROOT / "simulate").glob("*.py")]
    lines = {module_id(path): len(path.read_text().splitlines()) for path in tracked}
    long = {name for name, count in lines.items() if count > LONGEST}
    assert long == set(LONG_FOR_A_REASON), "split it, or say above which one idea makes it this long"


def test_a_folder_holds_one_idea() -> None:
    """More modules than that are several ideas: make a package of one. `cli` has a module for each verb."""
    modules = [path for path in (*MODULES, *WEB_MODULES) if path.name != "__init__.py"]
    folders = Counter(module_id(path.parent) for path in modules)
    assert {name: count for name, count in folders.items() if count > MOST_MODULES} == {
        "agents/spak/cli": folders["agents/spak/cli"]
    }


def beside(package: str) -> dict[str, set[str]]:
    """What each module or folder imports of those in the same folder, late imports too."""
    graph = grimp.build_graph(package, cache_dir=None)
    after: dict[str, set[str]] = {}
    for name in graph.modules:
        for other in graph.find_modules_directly_imported_by(name):
            mine, its = name.split("."), other.split(".")
            fork = next((n for n, (a, b) in enumerate(zip(mine, its, strict=False)) if a != b), None)
            if fork is not None:  # else one is the package of the other
                after.setdefault(".".join(mine[: fork + 1]), set()).add(".".join(its[: fork + 1]))
    return after


def circles(package: str) -> list[list[str]]:
    """Groups of modules or folders of one folder in which each reaches the others by imports."""
    after = beside(package)
    reached: dict[str, set[str]] = {}
    for name in after:
        queue, seen = [name], set[str]()
        while queue:
            queue += (new := after.get(queue.pop(), set()) - seen)
            seen |= new
        reached[name] = seen
    both = ((a, seen) for a, seen in reached.items() if a in seen)
    groups = {frozenset(b for b in seen if a in reached.get(b, ())) for a, seen in both}
    return sorted(map(sorted, groups))


@pytest.mark.parametrize("package", ["spak", "spakweb"])
def test_no_circle_of_imports(package: str) -> None:
    assert circles(package) == []


def test_the_map_names_every_room() -> None:
    """docs/index.md has a row for each folder of code, but for those inside of a room."""
    text = (ROOT / "docs/index.md").read_text()
    rooms = {path.parent for path in (*MODULES, *WEB_MODULES) if path.name == "__init__.py"}
    rooms = {module_id(path) for path in rooms if len(path.relative_to(ROOT).parts) in (3, 4)}
    rooms = {name for name in rooms if name.startswith("platform/") or name.count("/") == 2}
    assert [name for name in sorted(rooms) if f"| `{name}/` |" not in text] == []


def test_helpers_of_tests_have_names_of_their_own() -> None:
    """Test modules may share a name (importmode importlib); what they import from `tests/` may not."""
    helpers = Counter(path.stem for path in (ROOT / "tests").glob("*.py"))
    known = set(sys.stdlib_module_names) | {"spak", "spakweb", "bench", "simulate"}
    assert not set(helpers) & known
    assert not list((ROOT / "tests").rglob("__init__.py"))
