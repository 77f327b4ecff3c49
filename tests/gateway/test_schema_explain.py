"""`turnstile schema explain`: its forms, its place in an answer, and what it says of files and schemas that are wrong."""

from __future__ import annotations

import io
import json
import sys
from xml.etree import ElementTree

import pytest

from gateway.cli import main
from tests.support.tiny_models import save_folder, tiny_llama

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["n"],
          "additionalProperties": False}


@pytest.fixture
def explain(tmp_path, capsys):
    """The exit code, standard output and standard error of explaining a schema with some arguments."""
    def run(schema: object, *arguments: str) -> tuple[int, str, str]:
        file = tmp_path / "schema.json"
        file.write_bytes(schema if isinstance(schema, bytes) else json.dumps(schema).encode())
        code = main(["schema", "explain", str(file), *arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_the_terminal_is_told_parts_shapes_rules_and_sizes(explain):
    code, out, err = explain(SCHEMA)
    assert (code, err) == (0, "")
    for said in ("answers can be held to this schema", "/properties/n", "Object(", "Rule 0: the answer", "states"):
        assert said in out


def test_the_place_after_a_text_is_shown(explain):
    code, out, _ = explain(SCHEMA, "--text", '{"n": 4')
    assert code == 0
    assert "After '{\"n\": 4'" in out
    assert "}" in out[out.index("After"):]


def test_a_text_that_leaves_the_schema_is_shown_up_to_there(explain):
    _, out, _ = explain(SCHEMA, "--text", '{"n": "x"}')
    assert "After '{\"n\": '" in out
    assert '" may not come here' in out


@pytest.mark.parametrize(("form", "begin"), [("svg", "<svg"), ("html", "<!doctype html>"), ("dot", "digraph")])
def test_other_forms_go_to_standard_output_or_a_file(form, begin, explain, tmp_path):
    code, out, _ = explain(SCHEMA, "--format", form)
    assert (code, out.startswith(begin)) == (0, True)
    file = tmp_path / f"out.{form}"
    code, nothing, _ = explain(SCHEMA, "--format", form, "--out", str(file))
    assert (code, nothing) == (0, "")
    assert file.read_text(encoding="utf-8").startswith(begin)


def test_the_drawing_is_an_image(explain):
    assert ElementTree.fromstring(explain(SCHEMA, "--format", "svg")[1]).tag.endswith("svg")


def test_styles_and_orders_are_those_of_answers(explain):
    free, compact = (explain(SCHEMA, "--text", "{", "--style", style)[1] for style in ("free", "compact"))
    assert "␣" in free[free.index("After"):]
    assert "␣" not in compact[compact.index("After"):]


def test_a_name_that_looks_like_a_misspelled_keyword_is_told(explain):
    code, out, _ = explain({"type": "object", "properties": {"a": {"type": "string", "minLenght": 3}}})
    assert code == 0
    assert "'minLength' may be meant" in out
    assert "/properties/a" in out[out.index("Not enforced"):]


def test_best_effort_says_what_it_leaves_out(explain):
    schema = {"type": "string", "not": {"format": "regex"}}
    assert explain(schema)[0] == 1
    code, out, _ = explain(schema, "--best-effort")
    assert code == 0
    assert "format" in out[out.index("Not enforced"):]


def test_a_refused_schema_is_named_with_its_pointer(explain):
    code, out, err = explain({"properties": {"a": {"type": "text"}}})
    assert (code, out) == (1, "")
    assert "refused at /properties/a, keyword 'type'" in err


@pytest.mark.parametrize(("content", "says"), [
    (b'{"type": ', "at line 1, column 10"), (b"\xff", "not UTF-8"), (b"[1]", "must be")])
def test_what_is_no_schema_is_told_with_its_place(content, says, explain):
    code, out, err = explain(content)
    assert (code, out) == (1, "")
    assert says in err
    assert "Traceback" not in err


def test_a_file_that_is_not_there_and_one_that_cannot_be_written_are_told(explain, tmp_path, capsys):
    assert main(["schema", "explain", str(tmp_path / "none.json")]) == 1
    assert "No such file" in capsys.readouterr().err
    code, _, err = explain(SCHEMA, "--out", str(tmp_path / "no" / "folder"))
    assert code == 1
    assert "can't be written" in err


def test_tokens_of_a_model_are_named(explain, tmp_path):
    model = save_folder(tmp_path / "model", tiny_llama())
    code, out, _ = explain(SCHEMA, "--model", str(model))
    assert code == 0
    assert "After ''" in out
    assert "allowed, for example '{" in out


def test_a_model_that_is_none_is_told(explain, tmp_path):
    code, _, err = explain(SCHEMA, "--text", "{", "--model", str(tmp_path / "none.gguf"))
    assert code == 1
    assert "none.gguf" in err


def test_a_dash_reads_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(SCHEMA).encode())))
    assert main(["schema", "explain", "-"]) == 0
    assert capsys.readouterr().out.startswith("standard input:")


def test_an_unknown_form_names_those_there_are(explain, capsys):
    with pytest.raises(SystemExit) as ended:
        explain(SCHEMA, "--format", "png")
    assert ended.value.code == 2
    assert "svg" in capsys.readouterr().err
