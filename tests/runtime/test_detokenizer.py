"""The text that comes out token by token is the text of all tokens, cut before the first stop string."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from runtime.detokenizer import Detokenizer


def feed(tokens: list[bytes], stop: tuple[str, ...] = ()) -> tuple[list[str], Detokenizer]:
    detokenizer = Detokenizer(stop)
    pieces = []
    for token in tokens:
        pieces.append(detokenizer.push(token))
        if detokenizer.stopped:
            return pieces, detokenizer
    return [*pieces, detokenizer.finish()], detokenizer


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(p % (len(data) + 1) for p in places)})
    return [data[a:b] for a, b in pairwise(edges)]


@given(st.text(), st.lists(st.integers(0, 200)))
def test_joined_pieces_are_the_text_wherever_it_is_cut(text: str, places: list[int]) -> None:
    pieces, _ = feed(cut(text.encode(errors="ignore"), places))
    assert "".join(pieces) == text.encode(errors="ignore").decode()


@given(st.binary(), st.lists(st.integers(0, 200)))
def test_bytes_that_are_no_text_come_out_as_a_decoder_of_the_whole_shows_them(data: bytes, places: list[int]) -> None:
    pieces, _ = feed(cut(data, places))
    assert "".join(pieces) == data.decode(errors="replace")


def test_a_character_in_two_tokens_is_held_until_it_is_whole() -> None:
    pieces, _ = feed([b"a\xf0\x9f", b"\x98", b"\x80b"])
    assert pieces == ["a", "", "😀b", ""]


@given(st.text(alphabet="ab ", max_size=30), st.lists(st.text(alphabet="ab ", min_size=1, max_size=4), min_size=1, max_size=3),
       st.lists(st.integers(0, 40)))
def test_the_text_ends_before_the_first_stop_string(text: str, stops: list[str], places: list[int]) -> None:
    pieces, detokenizer = feed(cut(text.encode(), places), tuple(stops))
    # By hand: grow the text a cut at a time; the first time that a stop string is in it, the answer ends before it.
    grown, wanted = "", text
    for piece in cut(text.encode(), places):
        grown += piece.decode()
        found = [grown.index(s) for s in stops if s in grown]
        if found:
            wanted = grown[: min(found)]
            break
    assert "".join(pieces) == wanted
    assert detokenizer.stopped == any(s in text for s in stops)


def test_nothing_of_a_stop_string_leaks_when_it_stretches_over_tokens() -> None:
    pieces, detokenizer = feed([b"alpha ", b"beta", b" gam", b"ma delta"], ("beta gamma",))
    assert pieces == ["alpha ", "", "", ""]
    assert detokenizer.stopped


def test_a_held_beginning_of_a_stop_string_comes_out_when_it_turns_out_to_be_none() -> None:
    pieces, _ = feed([b"beta", b" garden"], ("beta gamma",))
    assert pieces == ["", "beta garden", ""]
