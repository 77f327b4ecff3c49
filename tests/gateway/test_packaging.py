"""The package as it is declared, built and documented."""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from gateway import __version__
from gateway.cli import COMMANDS, build_parser
from gateway.configuration import flag_of, variable_of
from gateway.settings import DEFAULTS, RULES

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FLOORS = ("gateway", "grammar", "prefix_cache", "runtime", "kernels", "bench")
MODULE_OF = {"pyyaml": "yaml", "prometheus-client": "prometheus_client"}
# commands, and plugins of others
NOT_IMPORTED = {"ruff", "mypy", "types-pyyaml", "pytest-timeout", "anyio", "setuptools"}
PEERS = {"llguidance", "xgrammar"}        # measured where someone has installed them


def distributions(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", requirement)[0].lower() for requirement in requirements}


def modules_of(requirements: list[str]) -> set[str]:
    return {MODULE_OF.get(name, name.replace("-", "_")) for name in distributions(requirements)}


def foreign(modules: set[str]) -> set[str]:
    return modules - sys.stdlib_module_names - set(FLOORS)


def modules_imported(*folders: str) -> set[str]:
    """The top names of all imports in the Python files of these folders."""
    found: set[str] = set()
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found


def test_name_version_and_command_are_as_documented():
    assert PROJECT["name"] == "turnstile-gateway"
    assert PROJECT["version"] == __version__
    assert PROJECT["scripts"] == {"turnstile": "gateway.cli:main"}
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_torch_is_pinned_and_everything_else_has_a_lower_and_an_upper_bound():
    for requirement in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]:
        assert requirement == "torch==2.13.0" or re.fullmatch(
            r"[\w-]+(\[[\w,-]+\])?>=[\d.]+,<\d+|setuptools>=77", requirement), requirement


def test_every_dependency_is_imported_and_every_import_is_a_dependency():
    declared = modules_of(PROJECT["dependencies"])
    imported = modules_imported(*FLOORS)
    by_product = modules_imported(*(floor for floor in FLOORS if floor != "bench"))
    assert declared - imported == set()
    assert foreign(by_product) - declared <= {"starlette", "pydantic_core"}     # fastapi and pydantic are made of them
    assert foreign(modules_imported("bench")) <= declared | modules_of(PROJECT["optional-dependencies"]["test"]) | PEERS


def test_the_test_extra_is_what_the_tests_import_and_nothing_else():
    only_tests = [r for r in PROJECT["optional-dependencies"]["test"] if not distributions([r]) & NOT_IMPORTED]
    imported = foreign(modules_imported("tests"))
    assert modules_of(only_tests) - imported == set()
    declared = modules_of(only_tests) | modules_of(PROJECT["dependencies"])
    assert imported - declared <= {"tests", "starlette", *NOT_IMPORTED}


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory) -> set[str]:
    """What a wheel of a copy of the tree holds; built without the network, with the tools that are installed."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    tree.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    for floor in FLOORS:
        shutil.copytree(ROOT / floor, tree / floor, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for source in (tree / "kernels" / "native").glob("*.cpp"):
        source.unlink()                                 # compiling is tested with the kernels; here only the packing is
    (tree / "kernels" / "native" / "empty.cpp").write_text("")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
               "--disable-pip-version-check", "--wheel-dir", str(folder), str(tree)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return set(wheel.namelist())


def test_the_wheel_has_every_module_and_every_file_that_the_pages_load(wheel_names):
    assets = {"static", "templates", "native"}
    for floor in FLOORS:
        for path in (ROOT / floor).rglob("*"):
            name = path.relative_to(ROOT)
            if path.is_file() and (path.suffix == ".py" or assets & set(name.parts)) and path.suffix not in (".cpp", ".pyc"):
                assert str(name) in wheel_names


def test_the_wheel_has_nothing_else_at_its_top(wheel_names):
    assert {name.partition("/")[0] for name in wheel_names} == {*FLOORS, f"turnstile_gateway-{__version__}.dist-info"}


def test_the_documentation_has_every_setting_with_its_default():
    text = (ROOT / "docs/configuration.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, flags=re.MULTILINE))
    assert list(rows) == list(DEFAULTS)
    for name, default in DEFAULTS.items():
        shown = "empty" if default in ("", ()) else f"`{str(default).lower()}`" if isinstance(default, bool) else f"`{default}`"
        assert rows[name] == shown.replace(".0`", "`"), name
        assert RULES[name].help in text


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """The long options of a parser and of its commands."""
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= {option for command in action.choices.values() for option in options_of(command)}
    return found


def test_the_documentation_has_every_command_and_names_only_flags_and_variables_that_exist():
    pages = [ROOT / "README.md", ROOT / "docs/cli.md", ROOT / "docs/configuration.md"]
    text = "\n".join(page.read_text() for page in pages)
    names = [command.__name__.rpartition(".")[2] for command in COMMANDS]
    assert all(f"turnstile {name}" in (ROOT / "docs/cli.md").read_text() for name in names)
    assert set(re.findall(r"turnstile (?=[a-z])(\w+)", "\n".join(re.findall(r"`turnstile [^`]+`", text)))) <= set(names)
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - {"--help", "--version", "--json", "--config"}
    assert flags <= {*map(flag_of, DEFAULTS), *options_of(build_parser())}
    assert set(re.findall(r"TURNSTILE_[A-Z_]*[A-Z]", text)) <= {*map(variable_of, DEFAULTS), "TURNSTILE_CONFIG"}


def test_every_link_in_the_readme_and_the_documents_leads_to_a_file():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"


def make_serve(folder: Path, python: Path | str) -> subprocess.CompletedProcess[str]:
    command = ["make", "-C", str(ROOT), f"VENV={folder / 'venv'}", f"PYTHON={python}", "serve"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_make_names_a_remedy_where_python_is_too_old(tmp_path):
    old = tmp_path / "python-old"
    old.write_text("#!/bin/sh\ncase \"$1\" in -V) echo Python 3.9.2;; *) exit 1;; esac\n")
    old.chmod(0o755)
    done = make_serve(tmp_path, old)
    assert done.returncode != 0
    assert "needs 3.11 or newer" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_make_names_a_remedy_where_python_or_venv_is_missing(tmp_path):
    assert "apt-get install python3 python3-venv" in make_serve(tmp_path, "no-such-python").stderr
    bare = tmp_path / "python-bare"
    bare.write_text("#!/bin/sh\ncase \"$2\" in *ensurepip*) exit 1;; esac\n")
    bare.chmod(0o755)
    assert "apt-get install python3-venv" in make_serve(tmp_path, bare).stderr


def test_every_command_has_a_help_line():
    shown = build_parser().format_help()
    for command in COMMANDS:
        assert re.search(rf"^    {command.__name__.rpartition('.')[2]} +\w+", shown, flags=re.MULTILINE)
