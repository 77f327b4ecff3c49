"""Threads in which grammars are compiled, so that a hard one holds up no easy one, and nobody's many hold up another's few.

Every grammar goes down the quick lane first, with a twentieth of the compiler's limits: nearly all are done then, in some
milliseconds. What needs more goes down the slow lane with all of them. In each lane owners take turns. A grammar made to be
expensive thus costs the others a twentieth of its limits once, and another owner's hard grammar one turn.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import fields, replace
from typing import TypeVar

from grammar import GrammarTooLarge, Limits

T = TypeVar("T")
Job = Callable[[], None]

QUICK_SHARE = 20
_LEAST_SHARED = 10_000     # limits below count nesting and the like, which cost no time


def quick_limits(limits: Limits) -> Limits:
    """The limits of the quick lane."""
    shares = {field.name: getattr(limits, field.name) for field in fields(limits)}
    return replace(limits, **{name: value // QUICK_SHARE for name, value in shares.items() if value >= _LEAST_SHARED})


class CompileLanes:
    """Two threads, started when they are first needed. Whoever makes this must close it, or leave it to the process' end."""

    def __init__(self, name: str, limits: Limits | None = None) -> None:
        self._all = limits or Limits()
        self._few = quick_limits(self._all)
        self._quick, self._slow = _Lane(f"{name}-quick"), _Lane(f"{name}-slow")

    def submit(self, owner: str, compile_within: Callable[[Limits], T]) -> Future[T]:
        """Compile in some lane; `compile_within` raises GrammarTooLarge. Until the future is done it may be cancelled."""
        future: Future[T] = Future()
        self._quick.put(owner, lambda: self._try(owner, compile_within, future))
        return future

    def _try(self, owner: str, compile_within: Callable[[Limits], T], future: Future[T]) -> None:
        try:
            _fulfil(future, compile_within, self._few)
        except GrammarTooLarge:
            self._slow.put(owner, lambda: _finish(future, compile_within, self._all))

    def close(self) -> None:
        """Work that has not begun is left undone."""
        self._quick.close()
        self._slow.close()


def _finish(future: Future[T], compile_within: Callable[[Limits], T], limits: Limits) -> None:
    try:
        _fulfil(future, compile_within, limits)
    except GrammarTooLarge as error:
        if future.set_running_or_notify_cancel():
            future.set_exception(error)


def _fulfil(future: Future[T], compile_within: Callable[[Limits], T], limits: Limits) -> None:
    """Give a future its result or its exception, unless nobody wants it any more. Raises GrammarTooLarge instead of giving it."""
    if future.cancelled():
        return
    result: T | None = None
    failure: BaseException | None = None
    try:
        result = compile_within(limits)
    except GrammarTooLarge:
        raise
    except Exception as error:
        failure = error
    if not future.set_running_or_notify_cancel():
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)  # type: ignore[arg-type]


class _Lane:
    """One thread that works off jobs, the owners taking turns."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: OrderedDict[str, deque[Job]] = OrderedDict()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def put(self, owner: str, job: Job) -> None:
        with self._changed:
            if self._closed:
                return
            self._waiting.setdefault(owner, deque()).append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            job()

    def _next(self) -> Job | None:
        """The next owner's oldest job; waits for one. None once the lane is closed."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            if self._closed:
                return None
            owner, jobs = self._waiting.popitem(last=False)
            job = jobs.popleft()
            if jobs:
                self._waiting[owner] = jobs
            return job
