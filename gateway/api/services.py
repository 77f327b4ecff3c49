"""What the routes of one application share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import Request

from gateway import __version__
from gateway.admission import Admission
from gateway.api.constraints import ConstraintChecker
from gateway.drain import Drain
from gateway.engine_port import Engine, Tokenizer
from gateway.errors import ModelNotFound
from gateway.ledger import Ledger
from runtime.errors import EngineUnavailable
from runtime.protocol import ModelInfo

if TYPE_CHECKING:
    from gateway.settings import Settings


@dataclass(frozen=True, slots=True)
class Services:
    settings: Settings
    engine: Engine
    ledger: Ledger
    admission: Admission
    checker: ConstraintChecker
    drain: Drain
    new_id: Callable[[], str]          # random, unguessable, of letters and digits
    started_s: int                     # wall clock

    @property
    def state(self) -> str:
        """The engine's, or "draining"."""
        return "draining" if self.drain.begun else self.engine.state

    @property
    def takes_requests(self) -> bool:
        return self.engine.takes_requests and not self.drain.begun

    def model(self) -> tuple[ModelInfo, Tokenizer]:
        """The model that is served. Raises EngineUnavailable until there is one."""
        model, tokenizer = self.engine.model, self.engine.tokenizer
        if model is None or tokenizer is None:
            raise EngineUnavailable(f"The engine is {self.engine.state}: no model is served yet. GET /health/ready tells when.")
        return model, tokenizer

    def model_named(self, wanted: str) -> tuple[ModelInfo, Tokenizer]:
        """The model, if it is the one that the caller wants. Raises ModelNotFound."""
        model, tokenizer = self.model()
        if wanted != model.name:
            raise ModelNotFound(wanted, model.name)
        return model, tokenizer


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def fingerprint(model: ModelInfo) -> str:
    """Changes when the same request may give another answer: other gateway, model, weights, device or kernels."""
    told = "\0".join((__version__, model.name, model.epoch, model.device, model.kernels))
    return "fp_" + hashlib.sha256(told.encode()).hexdigest()[:12]
