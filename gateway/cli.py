"""The command line: `turnstile COMMAND …`. Parses, calls one command, turns what it raises into an exit code.

Exit codes: 0 done; 1 it failed; 2 the command, a setting or a named model was wrong; 130 interrupted (Ctrl-C);
143 ended by SIGTERM (a server that is ended so has done its work: 0).

Nothing here imports torch or the HTTP stack: each command imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from gateway import __version__
from gateway.commands import config, doctor, pull, schema, serve
from gateway.configuration import nearest
from gateway.user_error import UserError

COMMANDS = (serve, pull, doctor, schema, config)
INTERRUPTED = 130
TERMINATED = 143


class Parser(argparse.ArgumentParser):
    """Argparse, with the nearest known name in its errors."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        hint = nearest(choice[1], re.findall(r"[\w-]+", choice[2])) if choice else ""
        super().error(message + hint)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """End with the first argument that no flag or position takes, and the nearest flag."""
        wrong = unknown[0].partition("=")[0]
        flags = [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]
        what = f"unknown flag {wrong}{nearest(wrong, flags)}" if wrong.startswith("-") else f"one argument too many: {wrong!r}"
        self.error(what)


def build_parser() -> Parser:
    parser = Parser(prog="turnstile", description="A gateway for structured, cached text generation.",
                    epilog="example:\n  turnstile serve          # then open http://127.0.0.1:8000/dashboard")
    parser.add_argument("--version", action="version", version=f"turnstile {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for command in COMMANDS:
        command.add_to(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    parser = build_parser()
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        getattr(arguments, "parser", parser).refuse(unknown)
    if not hasattr(arguments, "run"):
        getattr(arguments, "parser", parser).print_help(sys.stderr)
        return 2
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        return int(arguments.run(arguments))
    except UserError as error:
        print(f"turnstile: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("turnstile: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:                     # the reader of our output has gone; that is its choice
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(signal_number: int, frame: object) -> NoReturn:
    """End as an exception does, so that what is half done gets cleaned up."""
    raise SystemExit(TERMINATED)


if __name__ == "__main__":
    sys.exit(main())
