"""The secret that cache domains are derived with: given in the settings, or made once and kept in the data folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from dataclasses import replace
from pathlib import Path

from gateway.settings import Settings
from gateway.user_error import UserError

FILE_NAME = "cache_secret"


class SecretUnreadable(UserError):
    """The secret's file can be neither read nor made."""


def with_cache_secret(settings: Settings) -> Settings:
    """`settings` with a cache secret in them. One that is made stays the same over restarts."""
    return settings if settings.cache_secret else replace(settings, cache_secret=kept_secret(settings.data_dir))


def kept_secret(data_dir: Path) -> str:
    """The data folder's secret, readable by this user only; made when there is none.

    It is written aside and linked into place, so that of two gateways that start at once both get the same whole one.
    """
    path = data_dir / FILE_NAME
    try:
        if not path.exists():
            data_dir.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=data_dir, prefix=FILE_NAME) as aside:     # made with mode 0600
                aside.write(secrets.token_hex(32))
                aside.flush()
                with contextlib.suppress(FileExistsError):
                    os.link(aside.name, path)
        secret = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SecretUnreadable(f"the cache secret {path} can be neither read nor made: {error.strerror}. "
                               "Set cache_secret, or choose another data folder with --data-dir") from error
    except UnicodeDecodeError as error:
        raise SecretUnreadable(f"the cache secret in {path} is no text: remove the file, and one is made") from error
    if len(secret) < 16:
        raise SecretUnreadable(f"the cache secret in {path} has less than 16 characters: remove the file, and one is made")
    return secret
