"""`turnstile doctor`: what was found on this machine, what is missing, and how to get it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from typing import Any

from gateway.commands.flags import add_model_argument, add_setting_flags, configuration_of
from gateway.examination import Finding, examine

MARKS = {"ok": "ok     ", "note": "note   ", "missing": "MISSING"}


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor", help="what was found here, and what is missing", usage="%(prog)s [MODEL] [--json] [settings]",
        description="Look at everything that serving needs, with the settings that 'serve' would use. "
                    "Exit code 0: it can serve; 1: it can't, and the lines marked MISSING say why.",
        epilog="example:\n  turnstile doctor --json")
    add_model_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_setting_flags(parser)
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    findings = examine(configuration_of(arguments).settings)
    can_serve = all(finding.state != "missing" for finding in findings)
    if arguments.json:
        print(json.dumps({"can_serve": can_serve, "findings": [dataclasses.asdict(finding) for finding in findings]}, indent=2))
    else:
        print(os.linesep.join(map(_line, findings)))
        print("\nThis machine can serve." if can_serve else "\nThis machine can't serve yet: see the lines marked MISSING.")
    return 0 if can_serve else 1


def _line(finding: Finding) -> str:
    line = f"{MARKS[finding.state]}  {finding.name:12}  {finding.found}"
    return f"{line}\n{'':9}{'':14}-> {finding.remedy}" if finding.remedy else line
