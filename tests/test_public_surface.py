"""What a package offers is its `__all__`: each name in it exists and is documented, and nothing else is offered."""

from __future__ import annotations

import importlib
import importlib.util
import re
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("gateway", "grammar", "prefix_cache", "runtime", "kernels", "bench")


def documentation_of(floor: str) -> str:
    """The floor's own page where there is one, and the architecture."""
    pages = [ROOT / "docs" / f"{floor.replace('_', '-')}.md", ROOT / "docs" / "architecture.md"]
    return "\n".join(page.read_text(encoding="utf-8") for page in pages if page.exists())


def code_words(markdown: str) -> set[str]:
    """Identifiers inside `code` and code blocks."""
    code = re.findall(r"```.*?```|`[^`\n]+`", markdown, flags=re.DOTALL)
    return set(re.findall(r"\w+", " ".join(code)))


def offered(floor: str) -> list[str]:
    return list(getattr(importlib.import_module(floor), "__all__", []))


@pytest.mark.parametrize("floor", FLOORS)
def test_what_is_offered_exists(floor):
    package = importlib.import_module(floor)
    missing = [name for name in offered(floor)
               if not hasattr(package, name) and importlib.util.find_spec(f"{floor}.{name}") is None]
    assert missing == []


@pytest.mark.parametrize("floor", FLOORS)
def test_what_is_offered_is_documented(floor):
    documented = code_words(documentation_of(floor)) | {"__version__"}
    assert sorted(set(offered(floor)) - documented) == []


@pytest.mark.parametrize("floor", FLOORS)
def test_what_a_package_imports_for_others_is_offered(floor):
    package = importlib.import_module(floor)
    own = {name for name, value in vars(package).items()
           if not name.startswith("_") and not isinstance(value, types.ModuleType) and name != "annotations"}
    assert sorted(own - set(offered(floor))) == []


@pytest.mark.parametrize("floor", FLOORS)
def test_a_package_says_what_it_is_for(floor):
    assert len(importlib.import_module(floor).__doc__ or "") > 40
