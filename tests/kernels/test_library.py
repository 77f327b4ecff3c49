"""Finding and loading the native library: what is wrong with it is said, never crashed on."""

from __future__ import annotations

import importlib.machinery
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernels import library

SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]


def compiled(folder: Path, source: str) -> Path:
    """A shared library of a few lines of C."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (folder / "other.c").write_text(source)
    path = folder / f"_native{SUFFIX}"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", path, folder / "other.c"], check=True)
    return path


def test_the_built_library_speaks_this_version(native_library):
    assert native_library.turnstile_abi_version() == library.ABI_VERSION


def test_the_built_library_says_which_instructions_it_uses(native_library):
    assert library.instruction_set() in {"portable", "avx2", "avx512"}


def test_a_library_of_another_version_is_refused_with_both_versions(tmp_path):
    ours = library.ABI_VERSION
    path = compiled(tmp_path, f"int turnstile_abi_version(void) {{ return {ours + 1}; }}")
    with pytest.raises(library.LibraryUnusable, match=f"version {ours + 1}, this code needs {ours}"):
        library.open_library(path)


def test_a_library_that_tells_no_version_is_refused(tmp_path):
    path = compiled(tmp_path, "int something_else(void) { return 1; }")
    with pytest.raises(library.LibraryUnusable, match="interface version None"):
        library.open_library(path)


def test_a_file_that_is_no_library_is_refused_with_the_remedy(tmp_path):
    path = tmp_path / f"_native{SUFFIX}"
    path.write_bytes(b"not a library")
    with pytest.raises(library.LibraryUnusable, match=r"cannot be loaded .* install a C\+\+17 compiler"):
        library.open_library(path)


def test_a_folder_without_a_library_has_none(tmp_path):
    assert library.find(tmp_path) is None
    (tmp_path / "_native.txt").touch()
    assert library.find(tmp_path) is None


def test_a_library_for_this_interpreter_is_found(tmp_path):
    path = tmp_path / f"_native{SUFFIX}"
    path.touch()
    assert library.find(tmp_path) == path


def test_a_missing_library_is_explained(tmp_path):
    copy = tmp_path / "kernels"
    shutil.copytree(Path(library.__file__).parent, copy, ignore=shutil.ignore_patterns("*.so", "*.pyd", "native", "__pycache__"))
    code = "from kernels import library; print(library.load(), library.instruction_set(), library.why_missing())"
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said.startswith("None None the native library was not built; to get it, install a C++17 compiler")


def test_a_failing_compiler_leaves_a_build_that_succeeds_and_says_so(tmp_path):
    pytest.importorskip("setuptools", reason="needs setuptools")
    root = Path(library.__file__).parent.parent
    nothing = shutil.which("false") or pytest.skip("needs a program that always fails")
    command = [sys.executable, "setup.py", "build_ext", "--build-lib", tmp_path / "lib", "--build-temp", tmp_path / "temp"]
    built = subprocess.run(command, cwd=root, env={**os.environ, "CC": nothing, "CXX": nothing}, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert "the C++ compiler is missing or failed" in built.stdout
    assert list((tmp_path / "lib").rglob("_native*")) == []


def test_looking_for_the_library_imports_no_torch():
    code = "import sys, kernels, kernels.library; kernels.library.load(); print('torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          cwd=Path(library.__file__).parent.parent).stdout
    assert said == "False\n"


def test_two_users_of_one_function_keep_their_own_types(native_library):
    first = library.bind(native_library, "turnstile_threads", [])
    second = library.bind(native_library, "turnstile_threads", [], object)
    assert first.restype is None and second.restype is object
