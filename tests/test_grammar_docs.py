"""docs/grammar.md says what the code does: the same keywords, formats, limits, and the same drawing."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

from grammar import Limits, formats
from grammar.explain.drawing import drawing
from grammar.explain.explanation import explain_schema
from grammar.schema.keywords import ANNOTATIONS, FORMS

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "grammar.md").read_text(encoding="utf-8")
OF_OLDER_DRAFTS = {"dependencies", "additionalItems"}     # they are read as what took their place


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def named_in_table(text: str) -> set[str]:
    """The code words in the first column of a table's rows."""
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row.split("|")[1])}


def test_every_keyword_of_the_compiler_is_in_the_table_and_no_other():
    assert named_in_table(section("Keywords")) == FORMS.keys() | OF_OLDER_DRAFTS


def test_the_names_that_restrain_nothing_are_those_of_the_code():
    listed = section("Keywords").split("because they restrain nothing:")[1].split(", and every name that starts")[0]
    assert set(re.findall(r"`([^`]+)`", listed)) == ANNOTATIONS


def test_every_format_that_is_enforced_is_in_the_table_and_no_other():
    assert named_in_table(section("Formats")) == formats.ENFORCED


def test_every_limit_is_in_the_table_with_its_default():
    rows = [line.split("|")[1:3] for line in section("Limits").splitlines() if line.startswith("| `")]
    documented = {name.strip(" `"): int(value.strip().replace(",", "")) for name, value in rows}
    assert documented == dataclasses.asdict(Limits())


def test_the_drawing_is_that_of_the_example():
    schema = json.loads(section("How it works").split("```json")[1].split("```")[0])
    shown = (DOCS / "images" / "grammar-example.svg").read_text(encoding="utf-8")
    assert shown == drawing(explain_schema(schema).diagram), (
        "make it again: turnstile schema explain FILE --format svg --out docs/images/grammar-example.svg")


def test_what_is_said_of_the_example_s_position_is_what_explain_says():
    schema = json.loads(section("How it works").split("```json")[1].split("```")[0])
    place = explain_schema(schema).after('{"age": 4')
    assert all(frame in PAGE for frame in place.frames)
