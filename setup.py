"""Builds the native code in kernels/native; everything else about the package is in pyproject.toml.

The library of tensor operations is a plain C interface that ctypes loads, so it needs no Python headers and exports no module.
Grammars are an extension module, since a mask takes less time than a call through ctypes. A missing or failing compiler
is no error: the package then runs its reference operations, and `turnstile doctor` says so.
"""

from __future__ import annotations

from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

# No contraction of a * b + c: where a fused product is wanted the code says so, and rows must not depend on the
# compiler's choice. No -march: each file names the instruction sets that it is compiled for, one is chosen at run time.
GNU_FLAGS = ["-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-g0", "-Wall", "-Wextra", "-Wno-psabi", "-pthread"]
MICROSOFT_FLAGS = ["/std:c++17", "/O2", "/fp:precise", "/EHsc"]


class BuildNative(build_ext):
    """Compiles the library with flags for the compiler at hand, or explains in one line why there is none."""

    def build_extension(self, extension: Extension) -> None:
        microsoft = self.compiler.compiler_type == "msvc"
        extension.extra_compile_args = MICROSOFT_FLAGS if microsoft else GNU_FLAGS
        extension.extra_link_args = [] if microsoft else ["-pthread"]
        try:
            super().build_extension(extension)
        except (CCompilerError, ExecError, PlatformError, OSError):
            print("turnstile-gateway: the C++ compiler is missing or failed (see above), so there is no native library; "
                  "the slower reference operations will run instead")

    def get_export_symbols(self, extension: Extension) -> list[str]:
        return []       # functions export themselves

    def get_source_files(self) -> list[str]:
        return [*super().get_source_files(), *glob("kernels/native/**/*.h", recursive=True)]


setup(
    ext_modules=[
        Extension(
            "kernels._native",
            sources=sorted(glob("kernels/native/*.cpp")),
            depends=sorted(glob("kernels/native/*.h")),
            language="c++",
            optional=True,
        ),
        Extension(
            "kernels._grammar",
            sources=sorted(glob("kernels/native/grammar/*.cpp")),
            depends=sorted(glob("kernels/native/grammar/*.h")),
            language="c++",
            optional=True,
        ),
    ],
    cmdclass={"build_ext": BuildNative},
)
