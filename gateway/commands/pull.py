"""`turnstile pull`: put the model on this disk, checked."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gateway.commands.flags import add_model_argument, add_setting_flags, configuration_of


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "pull", help="fetch a model and check it",
        description="Fetch the embedded model (SHA-256 checked) or a hub model into the data folder. "
                    "Does nothing when it is already there and right.",
        epilog="example:\n  turnstile pull --data-dir /srv/models")
    add_model_argument(parser)
    add_setting_flags(parser, ["data_dir"])
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    from gateway.model_choice import choose, fetched

    settings = configuration_of(arguments).settings
    path = fetched(choose(settings.model, settings.data_dir), settings.data_dir, sys.stderr)
    print(path)
    return 0
