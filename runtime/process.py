"""The engine's own process: loads the model, then turns commands into steps and steps into events.

It shares nothing with the gateway but a pipe of `protocol` values. It ends on Shutdown, and when the pipe
closes because the gateway is gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import multiprocessing
import os
import signal
import sys
from multiprocessing.connection import Connection

from .config import EngineConfig
from .engine import Engine
from .errors import RuntimeFault
from .protocol import Cancel, Event, Ready, Shutdown, StartFailed, Submit
from .start import start_engine

STATS_EVERY_S = 0.25
ALIVE_EVERY_S = 1.0         # a busy engine says at least so often that it is
SWITCH_S = 1e-4             # a step gives the interpreter away hundreds of times, and may wait so long each time
COMPILE_POLL_S = 0.002      # how often a waiting engine looks whether a grammar has been compiled
EXPIRE_EVERY_S = 1.0


def run(config: EngineConfig, pipe: Connection) -> None:
    """The process's main function."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)            # Ctrl-C is the gateway's to handle
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _die_with_parent()
    sys.setswitchinterval(SWITCH_S)
    logging.basicConfig(format="turnstile engine: %(message)s", level=logging.WARNING)
    try:
        engine, info = start_engine(config)
    except RuntimeFault as fault:
        pipe.send([StartFailed(fault.code, str(fault))])
        return
    pipe.send([Ready(info), engine.stats()])
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        _serve(engine, pipe)


def _serve(engine: Engine, pipe: Connection) -> None:
    last_stats = engine.stats()
    told_s = expired_s = engine.clock()
    while True:
        events: list[Event] = []
        for command in _commands(engine, pipe):
            match command:
                case Submit(request):
                    events += engine.submit(request)
                case Cancel(request_id):
                    engine.cancel(request_id)
                case Shutdown():
                    return
        events += engine.step()
        now_s = engine.clock()
        if now_s - expired_s >= EXPIRE_EVERY_S:
            engine.expire()
            expired_s = now_s
        if now_s - told_s >= STATS_EVERY_S or engine.idle:
            stats = engine.stats()
            if stats != last_stats or (now_s - told_s >= ALIVE_EVERY_S and not engine.idle):
                events.append(stats)
                last_stats, told_s = stats, now_s
        if events:
            pipe.send(events)


def _commands(engine: Engine, pipe: Connection) -> list[Submit | Cancel | Shutdown]:
    """What has arrived. Waits only when there is nothing to compute."""
    if engine.idle:
        pipe.poll(EXPIRE_EVERY_S)
    elif engine.waits_for_grammars_only:
        pipe.poll(COMPILE_POLL_S)
    commands = []
    while pipe.poll(0):
        commands.append(pipe.recv())
    return commands


def _die_with_parent() -> None:
    """On Linux, end with the gateway (more exactly, its thread that started this process), even if it is killed in a step."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        parent = multiprocessing.parent_process()
        if parent is not None and os.getppid() != parent.pid:        # it died before this was set
            sys.exit(0)
