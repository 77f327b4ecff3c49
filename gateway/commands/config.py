"""`turnstile config show`: each setting, its value, and where it came from."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
from typing import Any

from gateway.commands.flags import add_model_argument, add_setting_flags, configuration_of
from gateway.settings import RULES

HIDDEN = "***"


def add_to(commands: Any) -> None:
    parser = commands.add_parser("config", help="show the settings in force", description="Look at the settings.",
                                 epilog="example:\n  turnstile config show --config turnstile.yaml")
    parser.set_defaults(parser=parser)
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    show = actions.add_parser(
        "show", help="each setting, its value and its origin", usage="%(prog)s [MODEL] [--json] [settings]",
        description="Print each setting, its value, and where it came from: flag, variable, file or default. Secrets are hidden.",
        epilog="example:\n  TURNSTILE_PORT=9000 turnstile config show --max-running 8")
    add_model_argument(show)
    show.add_argument("--json", action="store_true", help="print JSON")
    add_setting_flags(show)
    show.set_defaults(run=run, parser=show)


def run(arguments: argparse.Namespace) -> int:
    configuration = configuration_of(arguments)
    names = [field.name for field in dataclasses.fields(configuration.settings)]
    rows = {name: (shown(name, getattr(configuration.settings, name)), configuration.origins[name]) for name in names}
    if arguments.json:
        print(json.dumps({name: {"value": value, "origin": origin} for name, (value, origin) in rows.items()}, indent=2))
        return 0
    texts = {name: _text(value) for name, (value, _) in rows.items()}
    width, value_width = max(map(len, rows)), min(48, max(map(len, texts.values())))
    for name, (_, origin) in rows.items():
        print(f"{name:{width}}  {texts[name]:{value_width}}  {origin}")
    return 0


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool | list) or value == "" else str(value)


def shown(name: str, value: Any) -> Any:
    """A setting's value as it may be printed: no secret in it."""
    if name == "redis_url":
        address, mark, _ = value.partition("?")              # a query may hold a password, too
        return re.sub(r"(?<=://).*@", f"{HIDDEN}@", address) + (mark and f"?{HIDDEN}")
    if not RULES[name].secret:
        return value if isinstance(value, bool | int | float | str) else str(value)
    if isinstance(value, tuple):
        return [f"{entry.partition(':')[0]}:{HIDDEN}" for entry in value]
    return HIDDEN if value else ""
