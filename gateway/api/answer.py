"""A generation request from its arrival to its answer, the same for every endpoint.

    authorise -> read -> check -> tokenise -> submit -> first step -> body or stream

What differs between endpoints is a `Dialect`. Until the first step has come nothing is sent, so that whatever goes
wrong until then has its HTTP status; from then on a stream can only tell of an error in an event.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from gateway import errors
from gateway.admission import authorise
from gateway.api import render
from gateway.api.body import read_json
from gateway.api.choices import Listener, Selection, selection_of
from gateway.api.constraints import Constraint, constraint_of
from gateway.api.intake import Prompt, asked_logprobs, requests_of
from gateway.api.render import Head, Json, Shape
from gateway.api.run import Run, Step, while_connected
from gateway.api.services import Services, fingerprint, services_of
from gateway.api.stream import ChunkWriter, EventStream
from gateway.api.wire import GenerationBody, refuse_unsupported
from gateway.engine_port import Tokenizer
from gateway.ledger import Account
from runtime.errors import GrammarRefused, RuntimeFault
from runtime.protocol import Delta, GenerationRequest, ModelInfo

log = logging.getLogger("turnstile.gateway")

IGNORED_HEADER = "x-turnstile-ignored"
MAX_IGNORED_NAMES = 20
_SHOWABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
B = TypeVar("B", bound=GenerationBody)


@dataclass(frozen=True, slots=True)
class Dialect(Generic[B]):
    """One generation endpoint's own part."""

    endpoint: str                      # as the ledger and the metrics call it
    id_prefix: str
    body_type: type[B]
    prompts: Callable[[B, Tokenizer, ModelInfo], Awaitable[list[Prompt]]]
    shape: Callable[[], Shape]


@dataclass(frozen=True, slots=True)
class Job:
    """A request that has passed all checks."""

    body: GenerationBody
    selection: Selection
    head: Head
    shape: Shape
    constraint: Constraint | None
    not_enforced: Json                 # what the body says beside its choices of names that restrain nothing
    requests: tuple[GenerationRequest, ...]
    headers: dict[str, str]

    @property
    def wants_logprobs(self) -> bool:
        return asked_logprobs(self.body) is not None


async def answer(request: Request, dialect: Dialect[B]) -> Response:
    """The response to a generation request. Raises ApiError; the ledger has its record either way."""
    services = services_of(request)
    account = services.ledger.open(f"{dialect.id_prefix}{services.new_id()}", dialect.endpoint)
    timeout_s = services.settings.request_timeout_s
    deadline = asyncio.get_running_loop().time() + timeout_s
    with _settled(account, timeout_s):
        async with asyncio.timeout_at(deadline):
            job = await _prepare(request, dialect, services, account)
            await services.engine.rouse()
            run = _submit(services, job)
            try:
                if not job.body.stream:
                    return await while_connected(request.receive, _whole(run, job, account))
                first = await while_connected(request.receive, _first(run, job, account))
            except BaseException:
                await run.close()
                raise
        writer = ChunkWriter(job.head, job.shape, bool(job.body.stream_options and job.body.stream_options.include_usage),
                             at_the_end=job.not_enforced)
        return EventStream(run, first, writer, account, sequences_per_prompt=job.selection.made,
                           deadline=deadline, timeout_s=timeout_s, headers=job.headers)


async def _prepare(request: Request, dialect: Dialect[B], services: Services, account: Account) -> Job:
    tenant = authorise(request)
    account.tenant = tenant.name
    services.drain.refuse_if_begun()
    given = await read_json(request)
    try:
        body = dialect.body_type.model_validate(given)
    except ValidationError as error:
        raise errors.of_validation(error) from None
    account.stream = bool(body.stream)
    model, tokenizer = services.model_named(body.model)
    refuse_unsupported(body)
    selection = selection_of(body)
    constraint = constraint_of(body, services.settings.style)
    account.schema = constraint is not None
    left_out = await services.checker.check(constraint, tenant.name) if constraint is not None else ()
    prompts = await dialect.prompts(body, tokenizer, model)
    requests = requests_of(
        body, prompts, model, selection=selection, request_id=account.request_id, tenant=tenant.name,
        cache_domain=services.admission.cache_domain(tenant, body.cache_salt), grammar=constraint.spec if constraint else None)
    head = Head(account.request_id, int(account.started_s), model.name, fingerprint(model))
    best_effort = constraint is not None and constraint.spec.unsupported == "ignore"
    told = render.not_enforced(left_out) if best_effort or left_out else {}
    return Job(body, selection, head, dialect.shape(), constraint, told, requests, _ignored_header(body.ignored))


def _submit(services: Services, job: Job) -> Run:
    try:
        return Run(services.engine, job.requests)
    except GrammarRefused as fault:
        _raise_refusal(fault, job)


async def _first(run: Run, job: Job, account: Account) -> list[Step]:
    """The run's first steps."""
    steps = await _take(run, job)
    account.first_token()
    return steps


async def _take(run: Run, job: Job) -> list[Step]:
    try:
        return await run.take()
    except GrammarRefused as fault:
        _raise_refusal(fault, job)


def _raise_refusal(fault: GrammarRefused, job: Job) -> NoReturn:
    """What only the engine could find, such as an automaton too large for its vocabulary, in the words of the check before it."""
    if job.constraint is None:
        raise fault
    raise job.constraint.refusal(str(fault)) from None


async def _whole(run: Run, job: Job, account: Account) -> Response:
    """Everything the run says, as one body."""
    listener = Listener(len(job.requests), job.selection)
    while steps := await _take(run, job):
        account.first_token()
        for index, happened in steps:
            listener.hear(index, happened)
            if isinstance(happened, Delta):
                account.completion_tokens += len(happened.token_ids)
    told = listener.choices()
    choices = [job.shape.whole(i, choice.text, choice.logprobs if job.wants_logprobs else None, choice.reason)
               for i, choice in enumerate(told)]
    usage = run.usage(job.selection.made)
    await run.close()
    account.close(200, told[0].reason, usage=usage, queue_s=run.finished[0].queue_s)
    return JSONResponse({**render.body(job.head, job.shape, choices, usage), **job.not_enforced}, headers=job.headers)


@contextmanager
def _settled(account: Account, timeout_s: float) -> Iterator[None]:
    """Close `account` on every way out but a good one, and let nothing out but ApiError and what is no error of ours."""
    try:
        yield
    except asyncio.CancelledError:
        account.close(499, "cancelled", error="server_stopped")
        raise
    except Exception as error:
        told = _told(error, timeout_s)
        account.close(told.status, "cancelled" if isinstance(told, errors.ClientGone) else "error", error=told.code)
        log.debug("%s %s: %s %s", account.endpoint, account.request_id, told.status, told.code)
        if told.code == "internal_error":
            raise
        raise told from None


def _told(error: Exception, timeout_s: float) -> errors.ApiError:
    if isinstance(error, errors.ApiError):
        return error
    if isinstance(error, RuntimeFault):
        return errors.of_fault(error)
    return errors.RequestTimeout(timeout_s) if isinstance(error, TimeoutError) else errors.internal_error()


def _ignored_header(names: Sequence[str]) -> dict[str, str]:
    """Names come from the caller: only those that are harmless in a header are repeated."""
    shown = [name for name in names if _SHOWABLE_NAME.fullmatch(name)][:MAX_IGNORED_NAMES]
    return {IGNORED_HEADER: ",".join(shown)} if shown else {}
