"""The dashboard's pages as HTML and its files as bytes."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gateway.dashboard.view import Section
from gateway.ledger import KEPT_RECORDS

HERE = Path(__file__).parent
MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
PLAIN_ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-]+(:\d+)?|https?://\[[0-9A-Fa-f:]+\](:\d+)?")
SYSTEM_PROMPT = (
    "You are a careful assistant of a small library. Answer in one short sentence, in plain words, "
    "and say so when you do not know the answer."
)


@dataclass(frozen=True, slots=True)
class StaticFile:
    content: bytes
    media_type: str
    etag: str


def static_files() -> dict[str, StaticFile]:
    """All files that a page may ask for, by name. Nothing else is ever read for a request."""
    files = {}
    for path in sorted((HERE / "static").iterdir()):
        if path.suffix in MEDIA_TYPES:
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()[:32]
            files[path.name] = StaticFile(content, MEDIA_TYPES[path.suffix], f'"{digest}"')
    return files


class Pages:
    """Renders the templates; everything that comes from outside is escaped."""

    def __init__(self) -> None:
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True)

    def dashboard(self, sections: dict[str, Section], base: str, command: str, *, signed_in: bool) -> str:
        """`base`: the path under which the dashboard is reached."""
        return self._templates.get_template("dashboard.html").render(
            view=_merged(sections), points=json.dumps(sections["charts"]["points"], separators=(",", ":")),
            static=f"{base}/static", events=f"{base}/events", logout=f"{base}/logout",
            command=command, signed_in=signed_in, kept=KEPT_RECORDS)

    def login(self, base: str, problem: str = "") -> str:
        return self._templates.get_template("login.html").render(
            static=f"{base}/static", action=f"{base}/login", problem=problem)


def first_hit_command(origin: str, model: str, *, with_key: bool) -> str:
    """A shell command that sends one chat request twice. `origin` is replaced where it is not plainly one."""
    body = json.dumps({
        "model": model,
        "max_tokens": 32,
        "messages": [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": "What is a turnstile?"}],
    }, ensure_ascii=False)
    url = f"{origin if PLAIN_ORIGIN.fullmatch(origin) else 'http://127.0.0.1:8000'}/v1/chat/completions"
    key = " -H \"authorization: Bearer $KEY\"" if with_key else ""
    return "\n".join((
        "for i in 1 2; do",
        f"  curl -s {url}{key} \\",
        f"    -H 'content-type: application/json' -d {shlex.quote(body)}; echo",
        "done"))


def _merged(sections: dict[str, Section]) -> dict[str, Any]:
    """One namespace for the templates: section names only matter to live updates."""
    return {
        kind: {name: value for section in sections.values() for name, value in section.get(kind, {}).items()}
        for kind in ("text", "attributes", "lists")
    }
