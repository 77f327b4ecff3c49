"""`turnstile schema check`: a verdict, and for what is refused or unreadable the exact place."""

from __future__ import annotations

import io
import json
import sys

import pytest

from gateway.cli import main

WITH_BACKREFERENCE = {"type": "object", "properties": {"a/b": {"type": "string", "pattern": r"^(a)\1$"}}}
FINE = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}, "required": ["n"]}


@pytest.fixture
def check(tmp_path, capsys):
    """The exit code, standard output and standard error of checking a file with the given bytes."""
    def run(content: bytes) -> tuple[int, str, str]:
        file = tmp_path / "schema.json"
        file.write_bytes(content)
        code = main(["schema", "check", str(file)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_a_schema_that_can_be_kept_to_is_exit_code_0(check):
    code, out, err = check(json.dumps(FINE).encode())
    assert (code, err) == (0, "")
    assert "can be held to this schema" in out


@pytest.mark.parametrize("schema", [True, {}, {"enum": ["a", "b"]}, {"$defs": {"n": {"type": "null"}}, "$ref": "#/$defs/n"}])
def test_small_schemas_are_fine(schema, check):
    assert check(json.dumps(schema).encode())[0] == 0


def test_a_refused_keyword_is_named_with_its_pointer(check):
    code, out, err = check(json.dumps(WITH_BACKREFERENCE).encode())
    assert (code, out) == (1, "")
    assert "refused at /properties/a~1b, keyword 'pattern'" in err
    assert "Traceback" not in err


def test_what_is_left_out_on_request_is_listed(tmp_path, capsys):
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(WITH_BACKREFERENCE))
    assert main(["schema", "check", str(file), "--best-effort"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].endswith("answers can be held to this schema, except for")
    assert out[1].startswith("  pattern at /properties/a~1b: ")
    assert len(out) == 2


@pytest.mark.parametrize(("content", "says"), [
    (b'{"type": "object",\n "properties": }', "at line 2, column 16"),
    (b"", "at line 1, column 1"),
    (b'{"a": 1} {"b": 2}', "at line 1, column 10"),
    (b'\xff\xfe{"type"', "not UTF-8: byte 0 is 0xff"),
    (b"[" * 200_000, "nested too deeply"),
    (b'{"const": ' + b"9" * 5000 + b"}", "too many digits"),
])
def test_what_is_no_json_is_told_with_line_and_column(content, says, check):
    code, out, err = check(content)
    assert (code, out) == (1, "")
    assert says in err


@pytest.mark.parametrize("content", [b"7", b'"object"', b"[]", b"null"])
def test_json_that_is_no_schema_is_refused(content, check):
    code, _, err = check(content)
    assert code == 1
    assert err.startswith("turnstile: ")


def test_a_byte_order_mark_does_no_harm(check):
    assert check(b"\xef\xbb\xbf" + json.dumps(FINE).encode())[0] == 0


def test_a_dash_reads_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(FINE).encode())))
    assert main(["schema", "check", "-"]) == 0
    assert capsys.readouterr().out.startswith("standard input:")


def test_a_file_that_is_not_there_is_told(tmp_path, capsys):
    assert main(["schema", "check", str(tmp_path / "none.json")]) == 1
    assert capsys.readouterr().err == f"turnstile: {tmp_path / 'none.json'} can't be read: No such file or directory\n"
