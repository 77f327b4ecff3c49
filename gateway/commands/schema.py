"""`turnstile schema check`: whether a JSON schema can be kept to, exactly, without a model or a server.

`turnstile schema explain` is in `schema_explain`.
"""

from __future__ import annotations

import argparse
from typing import Any

from gateway.commands import schema_explain
from gateway.commands.json_file import name_of, read_json
from gateway.user_error import UserError


def add_to(commands: Any) -> None:
    parser = commands.add_parser("schema", help="check or explain a JSON schema", description="Work on JSON schemas.",
                                 epilog="example:\n  turnstile schema check invoice.json")
    parser.set_defaults(parser=parser)
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    check = actions.add_parser(
        "check", help="whether the gateway would take it",
        description="Tell whether answers can be held to a JSON schema. "
                    "If not, name the keyword and its JSON pointer, and exit with 1.",
        epilog="example:\n  turnstile schema check invoice.json\n  cat invoice.json | turnstile schema check -")
    check.add_argument("file", metavar="FILE", help="a file with a JSON schema; - reads standard input")
    check.add_argument("--best-effort", action="store_true", help="leave out keywords that can't be kept exactly, and list them")
    check.set_defaults(run=run, parser=check)
    schema_explain.add_to(actions)


def run(arguments: argparse.Namespace) -> int:
    from grammar import SchemaError, check_json_schema

    name = name_of(arguments.file)
    try:
        left_out = check_json_schema(read_json(arguments.file), unsupported="ignore" if arguments.best_effort else "refuse")
    except SchemaError as error:
        raise UserError(f"{name}: refused {error}") from error
    print(f"{name}: answers can be held to this schema{', except for' if left_out else ''}")
    for one in left_out:
        print(f"  {one.keyword} at {one.pointer or 'the root'}: {one.reason}")
    return 0
