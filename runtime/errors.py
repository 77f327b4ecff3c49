"""What can go wrong with a request, as values.

    RuntimeFault
      RequestTooLong      prompt and answer can't fit the model's context, or the whole cache
      QueueFull           try again later
      GrammarRefused      the schema, regex or choice can't be compiled, or grew past its budget
      EngineDied          the engine process ended while the request was in it
      EngineUnavailable   the engine is starting, restarting or could not start
      EngineAsleep        somebody put it to sleep, and nobody has woken it
      EngineBusy          it has requests in it, and what was asked of it must wait for their end
      RequestFaulted      this request's row raised; the others went on
      ModelUnreadable     the model's files are missing, damaged or of an unknown kind

Each has the HTTP status and the code that the gateway shows. They cross the pipe as `protocol.Failed`.
"""

from __future__ import annotations


class RuntimeFault(Exception):
    """`str(error)` says what happened, where, and what to do."""

    status = 500
    code = "internal_error"
    param: str | None = None

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class RequestTooLong(RuntimeFault):
    status = 400
    code = "context_length_exceeded"


class QueueFull(RuntimeFault):
    status = 503
    code = "overloaded"


class GrammarRefused(RuntimeFault):
    status = 400
    code = "invalid_json_schema"


class EngineDied(RuntimeFault):
    status = 502
    code = "engine_died"


class EngineUnavailable(RuntimeFault):
    status = 503
    code = "engine_unavailable"


class EngineAsleep(EngineUnavailable):
    code = "engine_asleep"


class EngineBusy(RuntimeFault):
    status = 409
    code = "engine_busy"


class RequestFaulted(RuntimeFault):
    status = 500
    code = "request_faulted"


class ModelUnreadable(RuntimeFault):
    status = 500
    code = "model_unreadable"


FAULTS: dict[str, type[RuntimeFault]] = {
    fault.code: fault
    for fault in (RequestTooLong, QueueFull, GrammarRefused, EngineDied, EngineUnavailable, EngineAsleep, EngineBusy,
                  RequestFaulted, ModelUnreadable)
}


def fault_of(code: str, message: str, param: str | None = None) -> RuntimeFault:
    """The exception for a `protocol.Failed`."""
    return FAULTS.get(code, RequestFaulted)(message, param)
