"""The comparison of mask engines: its schemas, its verdicts, its figures by hand, and one run of all of it."""

from __future__ import annotations

import copy
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bench import masks
from bench.masks_host import Host
from bench.masks_report import figures, table, worst_table, write_section
from bench.masks_schemas import Case, damage, own_cases
from bench.masks_vocabulary import Tokens, enlarged, model_tokens
from bench.masks_worker import Ours, run_job
from bench.masks_worst import checks, worst_cases
from tests.support.tiny_models import save_folder, tiny_llama

EOS = 256
BYTES = Tokens("bytes", [bytes([b]) for b in range(256)] + [b""], EOS, "")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def as_bytes(*instances: tuple[str, bool]) -> list[tuple[list[int], bool]]:
    return [(list(text.encode()), valid) for text, valid in instances]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_folder(tmp_path_factory.mktemp("tiny") / "model", tiny_llama())


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return own_cases(120, seed=3)


# --- schemas of our own


def test_a_seed_gives_the_same_cases_again():
    assert own_cases(20, seed=5) == own_cases(20, seed=5) != own_cases(20, seed=6)


def test_every_verdict_is_that_of_the_jsonschema_library(cases):
    for case in cases:
        oracle = Draft202012Validator(case.schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
        assert [oracle.is_valid(json.loads(text)) for text, _ in case.instances] == [valid for _, valid in case.instances]


def test_nearly_all_cases_have_valid_and_invalid_instances(cases):
    assert all(any(valid for _, valid in case.instances) for case in cases)
    assert sum(any(not valid for _, valid in case.instances) for case in cases) > 0.9 * len(cases)


def test_the_cases_are_all_different(cases):
    assert len({json.dumps(case.schema) for case in cases}) == len({case.name for case in cases}) == len(cases)


def test_damage_leaves_the_value_it_was_given_alone():
    value = {"a": [1, {"b": "x"}], "c": None, "d": 2.5}
    before = copy.deepcopy(value)
    damaged = [damage(value, random.Random(seed)) for seed in range(60)]
    assert value == before
    assert sum(each != value for each in damaged) > 50


# --- vocabularies


def test_a_model_s_tokens_spell_the_texts_that_they_encode(model):
    tokens = model_tokens(model)
    text = '{"a": "é😀", "b": [1, 2]}'
    assert b"".join(tokens.spellings[t] for t in tokens.encode(text)) == text.encode()


def test_a_vocabulary_made_larger_keeps_its_tokens_and_its_texts(model):
    small = model_tokens(model)
    large = enlarged(small, len(small.spellings) + 500, seed=1)
    assert large.spellings[: len(small.spellings)] == small.spellings
    assert len(set(large.spellings[len(small.spellings):])) == 500
    text = "the cat sat on the mat and the dog " * 20
    ids = large.encode(text)
    assert b"".join(large.spellings[t] for t in ids) == text.encode()
    assert len(ids) <= len(small.encode(text))


def test_a_vocabulary_survives_being_sent(model):
    large = enlarged(model_tokens(model), 2000)
    assert Tokens.from_json(json.loads(json.dumps(large.to_json()))) == large


# --- one job


def run_ours(schema: Any, *instances: tuple[str, bool]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    run_job(Ours(BYTES), EOS, {"schema": schema, "instances": as_bytes(*instances)}, told.update)
    return told


def test_an_instance_is_accepted_only_with_end_of_sequence_behind_it():
    told = run_ours(SCHEMA, ('{"n": 1}', True), ('{"n": 1', False), ('{"n": "x"}', False), ("", False))
    assert told["outcome"] == "ok"
    assert [i["state"] for i in told["instances"]] == ["accepted", "refused at the end", "refused", "refused"]


def test_every_mask_but_the_first_has_its_time():
    told = run_ours({"type": "boolean"}, ("true", True))
    assert len(told["instances"][0]["steps_us"]) == len("true")
    assert 0 <= told["compile_ms"] <= told["first_mask_ms"]


def test_a_schema_that_is_refused_has_its_error_and_no_instances():
    told = run_ours({"minimum": 2, "maximum": 1, "type": "number"}, ("1", False))
    assert told["outcome"] == "refused"
    assert "no value" in told["error"]
    assert "instances" not in told


# --- worker processes


@pytest.fixture(scope="module")
def host() -> Any:
    made = Host("ours", sys.executable, BYTES)
    yield made
    made.close()


def test_a_worker_runs_one_schema_after_the_other(host):
    assert host.unavailable == ""
    for number in (1, 2):
        told = host.run({"const": number}, as_bytes(("1", True), ("2", True)))
        assert [i["state"] == "accepted" for i in told["instances"]] == [number == 1, number == 2]


def test_a_worker_that_died_is_a_crash_and_the_next_schema_is_served(host):
    host._worker.kill()         # it reads jobs no more, but our pipe to it may still take one
    outcomes = [host.run(SCHEMA, as_bytes(('{"n": 1}', True)))["outcome"] for _ in range(2)]
    assert outcomes[0] in ("crash", "ok")
    assert outcomes[1] == "ok"


def test_an_engine_that_cannot_be_imported_is_unavailable_with_its_reason(tmp_path):
    (tmp_path / "llguidance.py").write_text("raise ImportError('not for this machine')")
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nPYTHONPATH={tmp_path}:$PYTHONPATH exec {sys.executable} \"$@\"\n")
    python.chmod(0o755)
    host = Host("llguidance", str(python), BYTES)
    host.close()
    assert "not for this machine" in host.unavailable


# --- figures


def row(outcome: str, *instances: tuple[bool, str, list[float]], first_ms: float = 1.0) -> dict[str, Any]:
    return {"outcome": outcome, "compile_ms": first_ms / 2, "first_mask_ms": first_ms,
            "instances": [{"valid": v, "state": s, "steps_us": steps, "tokens": len(steps)} for v, s, steps in instances]}


ROWS = {
    "a": row("ok", (True, "accepted", [1.0, 2.0]), (False, "refused", [3.0]), first_ms=2.0),
    "b": row("ok", (True, "refused", [4.0]), (False, "accepted", []), (False, "refused at the end", []), first_ms=4.0),
    "c": {"outcome": "refused", "error": "no", "compile_ms": 1.0},
    "d": {"outcome": "timeout", "error": "no answer in time"},
}


def test_figures_are_those_counted_by_hand():
    told = figures(ROWS)
    assert (told["schemas"], told["compiled"], told["refused"], told["failed"], told["schemas_right"]) == (4, 2, 1, 1, 1)
    assert (told["valid"], told["valid_refused"], told["invalid"], told["invalid_admitted"]) == (2, 1, 3, 1)
    assert (told["masks"], told["step_us_mean"], told["step_us_p50"], told["step_us_p100"]) == (4, 2.5, 2.5, 4.0)
    assert told["first_mask_ms_p50"] == 3.0


def test_a_table_has_a_column_for_each_engine_and_a_dash_for_what_was_not_measured():
    text = table({"ours": figures(ROWS), "other": figures({"d": ROWS["d"]})})
    assert "| | ours | other |" in text
    assert "| valid refused | 1 of 2 | 0 of 0 |" in text
    assert "| time between masks mean (µs) | 2.50 | – |" in text


def test_a_step_above_the_limit_a_wrong_verdict_and_a_slow_compilation_are_faults():
    rows = {"slow step": row("ok", (True, "accepted", [5_001.0])), "wrong": row("ok", (False, "accepted", [1.0])),
            "slow": row("ok", first_ms=4_002.0), "fine": row("ok", (True, "accepted", [4_999.0])),
            "bomb": {"outcome": "refused", "error": "the limit is 3", "compile_ms": 7.0}}
    verdicts = {name: verdict for name, _, _, verdict in checks(rows)}
    assert [name for name, verdict in verdicts.items() if verdict.startswith("FAULT")] == ["slow step", "wrong", "slow"]
    assert verdicts["bomb"] == "refused: the limit is 3"
    assert "| bomb | 7.0 ms; refused: the limit is 3 |" in worst_table({"ours": checks(rows)})


def test_a_section_of_a_page_is_replaced_and_the_rest_stays(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nWords.\n")
    write_section(page, "one", "first")
    write_section(page, "two", "second \\1")
    write_section(page, "one", "third")
    text = page.read_text()
    assert text.startswith("# Title\n\nWords.\n")
    assert "first" not in text
    assert text.index("third") < text.index("second \\1")


# --- cases


def test_folders_are_read_with_texts_as_they_are(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"schema": {"type": "string"}, "tests": [
        {"text": ' "x"', "valid": False}, {"data": "é\ud800", "valid": False}, {"data": "é", "valid": True}]}))
    (tmp_path / "b.json").write_text('{"type": "null"}')
    read = masks.read_cases(tmp_path, 0, 1)
    assert read[0].instances == ((' "x"', False), ('"\\u00e9\\ud800"', False), ('"é"', True))
    assert (read[1].schema, read[1].instances) == ({"type": "null"}, ())


def test_a_small_sample_is_part_of_a_larger_one(tmp_path):
    for n in range(20):
        (tmp_path / f"{n}.json").write_text('{"type": "null"}')
    small, large = ({case.name for case in masks.read_cases(tmp_path, size, 7)} for size in (5, 12))
    assert small < large


def test_the_worst_cases_are_judged_as_jsonschema_does():
    for case in worst_cases():
        if case.instances and "nested" not in case.name:        # its validator is recursive
            oracle = Draft202012Validator(case.schema)
            assert [oracle.is_valid(json.loads(text)) for text, _ in case.instances] == [v for _, v in case.instances], case.name


def test_our_engine_answers_each_worst_case_rightly_or_refuses_it_in_time():
    engine, rows = Ours(BYTES), {}
    for case in worst_cases():
        rows[case.name] = {}
        run_job(engine, EOS, {"schema": case.schema, "instances": as_bytes(*case.instances)}, rows[case.name].update)
    faults = [check for check in checks(rows) if check[3].startswith("FAULT") and "a step above" not in check[3]]
    assert faults == []         # steps are timed by the comparison: here they would be those of a busy machine


# --- all of it


def test_a_run_prints_tables_and_writes_them_to_a_page(model, tmp_path, capsys):
    page, everything = tmp_path / "page.md", tmp_path / "all.json"
    code = masks.main(["--model", str(model), "--own", "10", "--no-worst", "--write-docs", str(page), "--json", str(everything)])
    printed = capsys.readouterr().out
    assert code == 0
    assert "| schemas | 10 |" in printed
    assert "| invalid admitted | 0 of" in printed
    assert "| schemas | 10 |" in page.read_text()
    assert len(json.loads(everything.read_text())["own schemas"]["ours"]) == 10


def test_an_unknown_engine_is_an_error_that_names_those_there_are(model, capsys):
    with pytest.raises(SystemExit):
        masks.main(["--model", str(model), "--engines", "theirs"])
    assert "xgrammar" in capsys.readouterr().err
