"""docs/api.md names what the code has."""

from __future__ import annotations

import re
from pathlib import Path

from gateway.api.wire import REFUSED, ChatBody, CompletionBody
from gateway.errors import envelope, internal_error, of_fault
from gateway.ledger import Ledger
from gateway.metrics import render
from runtime.errors import FAULTS
from tests.support.memory_engine import MemoryEngine

DOCS = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


def test_every_field_is_named() -> None:
    fields = {*ChatBody.model_fields, *CompletionBody.model_fields, *REFUSED}
    assert len(fields) > 50
    assert {field for field in fields if f"`{field}`" not in DOCS and f"`{field}." not in DOCS} == set()


def test_every_metric_is_named_and_no_other() -> None:
    engine = MemoryEngine()
    text = render(Ledger(lambda: 0.0, lambda: 0.0).snapshot(), engine.stats, "ready", engine.model, "1")
    assert set(re.findall(r"`(turnstile_[a-z_]+)", DOCS)) == set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


def test_every_fault_that_a_request_can_meet_is_named() -> None:
    met = {code for code in FAULTS if code != "model_unreadable"}      # that one ends the start, not a request
    assert {code for code in met if f"`{code}`" not in DOCS} == set()
    assert f"`{envelope(internal_error())['error']['code']}`" in DOCS


def test_the_statuses_of_faults_are_those_of_the_table() -> None:
    for code, fault in FAULTS.items():
        if code != "model_unreadable":
            row = next(line for line in DOCS.splitlines() if line.startswith("| ") and f"`{code}`" in line)
            assert row.startswith(f"| {of_fault(fault('x')).status} |")
