"""`turnstile serve`: fetch the model if need be, start the engine, listen, and say where."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import socket
import sys
from typing import Any

from gateway import __version__
from gateway.commands.flags import add_model_argument, add_setting_flags, configuration_of
from gateway.listening import bind
from gateway.model_choice import choose, fetched
from gateway.secret import with_cache_secret
from gateway.settings import Settings
from gateway.user_error import UserError

STATE_POLL_S = 0.05
KEEP_ALIVE_S = 75           # longer than the usual 60 s of a proxy in front, so that the proxy closes first
LAST_WORDS_S = 3            # for streams that are cut to say so

CITY = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 30},
        "inhabitants": {"type": "integer", "minimum": 0, "maximum": 50_000_000},
    },
    "required": ["city", "inhabitants"],
    "additionalProperties": False,
}


class EngineFailed(UserError):
    """The engine could not start."""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "serve", help="serve a model over HTTP",
        usage="%(prog)s [MODEL] [settings]",
        description="Fetch the model if it isn't on this disk yet, and serve it: "
                    "an OpenAI-compatible API at /v1, a dashboard at /dashboard.",
        epilog="examples:\n  turnstile serve\n  turnstile serve ./models/my-llama --port 9000\n"
               "  turnstile serve --host 0.0.0.0 --api-keys alice:a-long-random-key")
    add_model_argument(parser)
    add_setting_flags(parser)
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    settings = configuration_of(arguments).settings
    choice = choose(settings.model, settings.data_dir)
    with bind(settings.host, settings.port) as listener:        # before anything slow: a taken port shows at once
        path = fetched(choice, settings.data_dir, sys.stderr)
        settings = with_cache_secret(settings)
        _configure_logging(settings.log_level)
        return asyncio.run(_serve(settings, settings.engine_config(path, choice.name), listener))


async def _serve(settings: Settings, engine_config: Any, listener: socket.socket) -> int:
    import uvicorn

    from gateway.app import create_app
    from gateway.draining_server import DrainingServer
    from runtime.client import EngineClient

    engine = EngineClient(engine_config)
    app = create_app(settings, engine)
    server = DrainingServer(app.state.drain, uvicorn.Config(
        app, log_config=None, access_log=settings.log_level == "debug", server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S, timeout_graceful_shutdown=LAST_WORDS_S, ws="none"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))       # uvicorn hands it on once it has shut down
    url = base_url(settings.host, listener)
    work = (_announce(settings, engine, server, url), _end_streams_at_exit(app, server),
            server.exit_when_drained(settings.drain_timeout_s))
    beside = [asyncio.create_task(each) for each in work]
    try:
        await server.serve(sockets=[listener])
    finally:
        for task in beside:
            task.cancel()
    if engine.failure:
        raise EngineFailed(f"the engine could not start: {engine.failure}")
    return 0


async def _announce(settings: Settings, engine: Any, server: Any, url: str) -> None:
    """Say where everything is once it is ready; end the server if it never will be."""
    while engine.model is None or not server.started:
        if engine.state == "failed":
            server.should_exit = True
            return
        await asyncio.sleep(STATE_POLL_S)
    print(banner(engine.model, url, with_key=bool(settings.api_keys)), flush=True)


async def _end_streams_at_exit(app: Any, server: Any) -> None:
    """An open dashboard never ends by itself, and the server would wait for it: end it when the server begins to stop."""
    from gateway.dashboard import end_streams

    while not server.should_exit:
        await asyncio.sleep(STATE_POLL_S)
    end_streams(app)


def base_url(host: str, listener: socket.socket) -> str:
    """The address to type into a browser on this machine."""
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{listener.getsockname()[1]}"


def banner(model: Any, url: str, with_key: bool) -> str:
    """What is printed when the gateway is ready."""
    key = ' -H "Authorization: Bearer $KEY"' if with_key else ""
    call = f"curl -s {url}/v1/chat/completions -H 'Content-Type: application/json'{key} -d"
    question = {"model": model.name, "temperature": 0, "messages": [{"role": "user", "content": "Name a city in France."}]}
    answer_format = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}}
    slow = "" if model.kernels == "native" else "\nThe native kernels are missing, so this is slow; turnstile doctor says why.\n"
    return f"""
Turnstile {__version__} serves {model.name} on {model.device} with {model.kernels} kernels (loaded in {model.load_s:.1f} s).
{slow}
  API        {url}/v1
  Dashboard  {url}/dashboard
  Reference  {url}/docs

An answer that must match a JSON schema:

  {call} '{json.dumps(question | {"response_format": answer_format})}'

The same question again; its prompt now comes from the cache:

  {call} '{json.dumps(question | {"max_tokens": 1})}' | grep -o '"cached_tokens": *[0-9]*'

Ctrl-C stops it."""


def _configure_logging(level: str) -> None:
    logging.basicConfig(level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if level != "debug":
        for chatty in ("uvicorn.error", "httpx", "asyncio", "httpcore"):
            logging.getLogger(chatty).setLevel(logging.WARNING)
