"""Flags of the settings, made from their table, and the configuration that a command was given."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gateway.configuration import Configuration, flag_of, read_configuration
from gateway.settings import DEFAULTS, LISTS, RULES


def add_setting_flags(parser: argparse.ArgumentParser, names: Iterable[str] = tuple(DEFAULTS)) -> None:
    """One flag for each setting in `names`, and --config. Values stay text: the table's own parsing checks them."""
    group = parser.add_argument_group("settings (each is also a TURNSTILE_… variable and a key of the --config file)")
    group.add_argument("--config", metavar="FILE", type=Path, help="a .yaml or .toml file with settings")
    for name in names:
        if name == "model":
            continue                            # the positional argument
        rule, default = RULES[name], DEFAULTS[name]
        shown = f" ({_default_text(default)})" if default not in ("", ()) else ""
        options: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS, "help": (rule.help + shown).replace("%", "%%")}
        if isinstance(default, bool):
            options |= {"nargs": "?", "const": "true", "metavar": "BOOL"}
        elif name in LISTS:
            options |= {"action": "append", "metavar": "TEXT"}
        else:
            options |= {"metavar": "{" + ",".join(rule.choices) + "}" if rule.choices else _metavar(default)}
        group.add_argument(flag_of(name), **options)


def add_model_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", default=argparse.SUPPRESS, metavar="MODEL",
                        help=f"{RULES['model'].help} ({DEFAULTS['model']})")


def configuration_of(arguments: argparse.Namespace) -> Configuration:
    """What flags, environment and file say. Raises SettingsError."""
    given = {name: value for name, value in vars(arguments).items() if name in DEFAULTS}
    for name in LISTS & given.keys():
        given[name] = [item for text in given[name] for item in text.split(",") if item]
    return read_configuration(given, os.environ, arguments.config)


def _default_text(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)


def _metavar(default: object) -> str:
    if isinstance(default, Path):
        return "DIR"
    return {int: "N", float: "X"}.get(type(default), "TEXT")
