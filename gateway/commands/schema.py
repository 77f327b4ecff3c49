"""`turnstile schema check`: whether a JSON schema can be kept to, exactly, without a model or a server."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from gateway.user_error import UserError


def add_to(commands: Any) -> None:
    parser = commands.add_parser("schema", help="check a JSON schema", description="Work on JSON schemas.",
                                 epilog="example:\n  turnstile schema check invoice.json")
    parser.set_defaults(parser=parser)
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    check = actions.add_parser(
        "check", help="whether the gateway would take it",
        description="Tell whether answers can be held to a JSON schema. "
                    "If not, name the keyword and its JSON pointer, and exit with 1.",
        epilog="example:\n  turnstile schema check invoice.json\n  cat invoice.json | turnstile schema check -")
    check.add_argument("file", metavar="FILE", help="a file with a JSON schema; - reads standard input")
    check.set_defaults(run=run, parser=check)


def run(arguments: argparse.Namespace) -> int:
    from grammar import SchemaError, check_json_schema

    name = "standard input" if arguments.file == "-" else arguments.file
    try:
        check_json_schema(_json(_read(arguments.file), name))
    except SchemaError as error:
        raise UserError(f"{name}: refused {error}") from error
    print(f"{name}: answers can be held to this schema")
    return 0


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        raise UserError(f"{file} can't be read: {error.strerror}") from error


def _json(data: bytes, name: str) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is not UTF-8: byte {error.start} is {data[error.start]:#04x}") from error
    except json.JSONDecodeError as error:
        raise UserError(f"{name} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise UserError(f"{name} is nested too deeply to be read") from error
    except ValueError as error:            # Python's limit on the digits of an integer
        raise UserError(f"{name} holds a number with too many digits") from error
