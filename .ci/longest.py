"""Print the ten longest source files and functions, and fail past the hard stops of CONTRIBUTING.md."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("gateway", "grammar", "prefix_cache", "runtime", "kernels", "bench")
MOST_FILE_LINES = 600
MOST_FUNCTION_LINES = 60


def functions(path: Path) -> list[tuple[int, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    return [(node.end_lineno - node.lineno + 1, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}") for node in found]


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def main() -> int:
    sources = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    by_file = sorted(((lines_of(path), str(path.relative_to(ROOT))) for path in sources), reverse=True)
    by_function = sorted((entry for path in sources for entry in functions(path)), reverse=True)
    print(f"{len(sources)} source files, {sum(lines for lines, _ in by_file)} lines")
    for title, entries in (("files", by_file), ("functions", by_function)):
        print(f"Ten longest {title}:")
        for lines, name in entries[:10]:
            print(f"{lines:6}  {name}")
    too_long = [name for lines, name in by_file if lines > MOST_FILE_LINES]
    too_long += [name for lines, name in by_function if lines > MOST_FUNCTION_LINES]
    for name in too_long:
        print(f"too long: {name}", file=sys.stderr)
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
