"""`turnstile schema explain`: what the grammar compiler makes of a schema, in words, as a page or as a drawing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.commands.json_file import name_of, read_json
from gateway.user_error import UserError

if TYPE_CHECKING:
    from grammar.explain.explanation import Explanation, Place

FORMATS = ("text", "svg", "html", "dot")


def add_to(actions: Any) -> None:
    parser = actions.add_parser(
        "explain", help="what the compiler makes of it", usage="%(prog)s FILE [--format FORMAT] [--out FILE] [--text TEXT]",
        description="Show the parts of a JSON schema, what each place in an answer may be, the automaton that answers are held "
                    "to, its size, and what is not enforced. With --text also where an answer that begins so stands, and what "
                    "may come next.",
        epilog="examples:\n  turnstile schema explain invoice.json\n"
               "  turnstile schema explain invoice.json --text '{\"total\": 1'\n"
               "  turnstile schema explain invoice.json --format svg --out invoice.svg")
    parser.add_argument("file", metavar="FILE", help="a file with a JSON schema; - reads standard input")
    parser.add_argument("--format", choices=FORMATS, default="text",
                        help="text (the default), html: a page with the drawing, svg, dot")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write there, not to standard output")
    parser.add_argument("--text", metavar="TEXT", help="the beginning of an answer")
    parser.add_argument("--model", metavar="MODEL", type=Path,
                        help="a model's file or folder: name tokens of its vocabulary that may come after the text")
    parser.add_argument("--property-order", choices=("schema", "any"), default="schema", help="of objects (schema)")
    parser.add_argument("--style", choices=("free", "compact", "pretty"), default="free", help="of the answer (free)")
    parser.add_argument("--best-effort", action="store_true", help="leave out what can't be enforced, and say what that is")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    from grammar import SchemaError
    from grammar.explain.explanation import explain_schema

    name = name_of(arguments.file)
    schema = read_json(arguments.file)
    try:
        told = explain_schema(schema, property_order=arguments.property_order, style=arguments.style,
                              unsupported="ignore" if arguments.best_effort else "refuse")
    except SchemaError as error:
        raise UserError(f"{name}: refused {error}") from error
    place = None
    if arguments.text is not None or arguments.model is not None:
        place = told.after(arguments.text or "", _token_bytes(arguments.model))
    _write(arguments.out, _RENDER[arguments.format](told, name, place))
    return 0


def _token_bytes(model: Path | None) -> list[bytes]:
    if model is None:
        return []
    from runtime.errors import ModelUnreadable
    from runtime.tokenizer import load_tokenizer

    try:
        return list(load_tokenizer(model).token_bytes)
    except ModelUnreadable as error:
        raise UserError(str(error)) from error


def _write(out: Path | None, text: str) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{out} can't be written: {error.strerror}") from error


def _text(told: Explanation, name: str, place: Place | None) -> str:
    from grammar.explain.page import in_words

    return in_words(told, name, place)


def _html(told: Explanation, name: str, place: Place | None) -> str:
    from grammar.explain.page import page

    return page(told, name, place)


def _svg(told: Explanation, name: str, place: Place | None) -> str:
    from grammar.explain.drawing import drawing

    return drawing(told.diagram)


def _dot(told: Explanation, name: str, place: Place | None) -> str:
    from grammar.explain.drawing import dot

    return dot(told.diagram)


_RENDER: dict[str, Callable[[Explanation, str, Place | None], str]] = {"text": _text, "html": _html, "svg": _svg, "dot": _dot}
