"""Reads a JSON file that a person named; what is wrong with it is told with its place."""

from __future__ import annotations

import json
import sys
from typing import Any

from gateway.user_error import UserError


def name_of(file: str) -> str:
    return "standard input" if file == "-" else file


def read_json(file: str) -> Any:
    """The value in a file; - reads standard input. Raises UserError."""
    return parsed(_read(file), name_of(file))


def parsed(data: bytes, name: str) -> Any:
    """The JSON value in some bytes. Raises UserError, with `name` and the place."""
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


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        raise UserError(f"{file} can't be read: {error.strerror}") from error
