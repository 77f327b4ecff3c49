"""The house's floors: imports point one way, and the pure floors stay pure."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# A floor may import itself and those named here.
MAY_IMPORT: dict[str, set[str]] = {
    "kernels": set(),
    "grammar": {"kernels"},
    "prefix_cache": {"kernels"},
    "runtime": {"grammar", "prefix_cache", "kernels"},
    "gateway": {"runtime", "grammar", "prefix_cache", "kernels"},
    "bench": {"gateway", "runtime", "grammar", "prefix_cache", "kernels"},
}
NOT_THE_PRODUCTS = {"tests", "transformers", "hypothesis", "pytest"}     # what only tests may import


def sources(floor: str) -> list[Path]:
    return sorted((ROOT / floor).rglob("*.py"))


def imports_of(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of each import, at whatever depth in the file."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            yield node.lineno, ".".join([*above, *([node.module] if node.module else [])])


def outside(floor: str, path: Path, source: str) -> list[str]:
    """The imports of a file that its floor may not have, as file:line name."""
    forbidden = (MAY_IMPORT.keys() | NOT_THE_PRODUCTS) - MAY_IMPORT[floor] - {floor}
    return [f"{path.relative_to(ROOT)}:{line} imports {name}" for line, name in imports_of(path, source)
            if name.partition(".")[0] in forbidden]


@pytest.mark.parametrize("floor", MAY_IMPORT)
def test_a_floor_imports_only_from_below(floor):
    assert sources(floor), f"{floor}/ has no source"
    assert [found for path in sources(floor) for found in outside(floor, path, path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(("floor", "source"), [
    ("kernels", "import grammar"),
    ("grammar", "def f():\n    from prefix_cache.tree import Tree"),
    ("prefix_cache", "from ..runtime import engine"),
    ("runtime", "import gateway.settings as s"),
    ("runtime", "import transformers"),
    ("gateway", "from bench import serving"),
    ("gateway", "from tests.support import served"),
])
def test_the_check_finds_an_import_that_points_up(floor, source):
    assert len(outside(floor, ROOT / floor / "some_module.py", source)) == 1


def modules(floor: str) -> list[str]:
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources(floor)]
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


def loaded_by(*names: str) -> set[str]:
    """The modules that a fresh interpreter holds after importing these."""
    code = f"import sys\nfor name in {names!r}: __import__(name)\nprint(*sys.modules, sep='\\n')"
    return set(subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("floor", ["grammar", "prefix_cache"])
def test_a_pure_floor_loads_neither_torch_nor_asyncio_whatever_of_it_is_imported(floor):
    assert not {"torch", "asyncio"} & loaded_by(*modules(floor))


@pytest.mark.parametrize("floor", ["grammar", "prefix_cache"])
def test_a_pure_floor_names_neither_torch_nor_asyncio(floor):
    named = {(path.name, name.partition(".")[0]) for path in sources(floor) for _, name in imports_of(path, path.read_text())}
    assert [(file, name) for file, name in named if name in ("torch", "asyncio")] == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_importing_a_package_alone_loads_no_torch(package):
    assert "torch" not in loaded_by(package)


def test_the_http_process_loads_no_torch():
    assert "torch" not in loaded_by("gateway.app", "gateway.commands.serve", "runtime.client")
