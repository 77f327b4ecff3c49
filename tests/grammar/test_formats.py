"""Formats against jsonschema's own checkers (with all their optional packages) and against hand-written examples."""

from __future__ import annotations

import random
import re

import pytest
from jsonschema import Draft202012Validator

from grammar import formats
from grammar.text import automata
from grammar.text.automata import Dfa

CHECKER = Draft202012Validator.FORMAT_CHECKER
JUDGED = sorted(formats.ENFORCED & set(CHECKER.checkers))
SLOW = {"iri", "iri-reference"}     # their checker parses with an Earley parser
SIGNS = "0123456789abcXYZTPZ:-._~/#?%@[](){}+ \n\t\"\\éK٣Ⅷ日😀,;=*|^$"

GOOD = {
    "date": ["2024-02-29", "0001-01-01", "2000-02-29", "9999-12-31"],
    "time": ["00:00:00Z", "23:59:59.123456789-23:59", "08:30:06z"],
    "date-time": ["2024-02-29T00:00:00Z", "1963-06-19t08:30:06.283185z", "1937-01-01T12:00:27.87+00:20"],
    "duration": ["P4DT12H30M5S", "P1Y2M3D", "PT36H", "P1DT12H", "P2W", "PT0S", "P0D", "P1M", "PT1M1S"],
    "email": ["joe.bloggs@example.com", "te~st@example.com", '"joe bloggs"@example.com', '"joe..\\"@b"@example.com',
              "a@[127.0.0.1]", "joe@[IPv6:::1]", "a" * 64 + "@b", "a@b-c.d"],
    "idn-email": ["실례@실례.테스트", "joe@example.com", '"δοκιμή"@x.y', "é" * 32 + "@é"],
    "hostname": ["www.example.com", "1host", "a--b.com", "x" * 63 + ".com", "xn--nw2a"],
    "idn-hostname": ["실례.테스트", "hostname", "例え.jp", "www.пример.рф", "ישראל.אבגד", "x" * 63, "Host-1", "नमस्ते"],
    "ipv4": ["0.0.0.0", "255.255.255.255", "10.20.30.40"],
    "ipv6": ["::", "::1", "1::", "1:2:3:4:5:6:7:8", "::ffff:192.168.0.1", "1:2::192.168.0.1", "1:2:3:4:5:6:1.2.3.4",
             "1:2:3:4:5:6:7::"],
    "uri": ["http://foo.bar/?baz=qux#quux", "urn:a:b", "ldap://[2001:db8::7]/c=GB?x?y", "tel:+1-816", "a:", "http://u:p%40@h:80/%20",
            "http://[v1.fe:x]/", "file:///etc/hosts", "http://087.10.0.1/"],
    "uri-reference": ["", "abc", "/abc", "//h/p", "?q", "#f", "./this:that", "http://a", "a/b:c"],
    "iri": ["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "urn:é", "http://[1:2:3:4:5:6:7:8]/", "http://a/?\ue000"],
    "iri-reference": ["/âππ", "âππ", "#ƒrägmênt", "//ƒøø/", ""],
    "uri-template": ["http://a/{term:1}/{term}", "", "{+var}", "{#a,b}", "{x*}", "a%41b", "a😀b", "{a.b}", "{?x,y:9}",
                     "it's"],
    "uuid": ["2EB8AA08-aa98-11EA-b4aa-73b441d16380", "00000000-0000-0000-0000-000000000000"],
    "json-pointer": ["", "/", "/foo/0", "/a~1b~0", "/ /é\n"],
    "relative-json-pointer": ["0", "1/a", "0#", "120/foo/bar", "2/0/baz"],
    "regex": ["^a+$", "([a-z0-9]|b)*?", r"\d{3}-\d{4}", "(?=a)b", "(?<!x)y", "[^-\\]]{2,}", "((a|b)c){1,5}", "", "a|b|",
              r"\bfoo\b"]}
BAD = {
    "date": ["2023-02-29", "1900-02-29", "2024-2-29", "0000-01-01", "2024-13-01", "２024-01-01", "2024-01-01\n"],
    "time": ["24:00:00Z", "12:00:00", "12:00Z", "12:00:60Z", "12:00:00+24:00", "12:00:00Z\n"],
    "date-time": ["2024-02-30T00:00:00Z", "2024-02-29 00:00:00Z", "2024-02-29T00:00:00", "1998-12-31T23:59:60Z"],
    "duration": ["PT", "P", "P1", "P1YT", "PT1D", "P1W2D", "P2D1Y", "4DT1H", "P1.5D", "P٣D"],
    "email": ["2962", ".a@b.c", "a.@b.c", "a..b@c.d", "a@b=c", "a@[127.0.0.300]", "a b@c.d", "@b", "a@", "a" * 65 + "@b", "é@b.c",
              "a@b, c@d"],
    "idn-email": ["2962", "é" * 33 + "@b", "a＠b.c"],
    "hostname": ["", ".", "a.", "-a", "a-", "a_b", "x" * 64, "a..b", "é", "\u212aelvin"],
    "idn-hostname": ["", "-a", "a-", "ab--c", "é" * 60, "〮실", "x" * 64, "a..b", "a_b", "É", "ªa", "0aא", "・", "xn--X"],
    "ipv4": ["127.0.0.0.1", "256.1.1.1", "01.2.3.4", "1.2.3", "1.2.3.4\n", "１.2.3.4", "0x7f.0.0.1"],
    "ipv6": ["12345::", "1::2::3", ":1:2:3:4:5:6:7", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8::", "::1%eth0",
             "::1.2.3.256", "127.0.0.1", "[::1]"],
    "uri": ["//foo.bar", "/abc", "http:// x", "a b:c", "1http://a", "http://a/%6G", "http://[::1", "http://é", "http://a:b/",
            "a:\\"],
    "uri-reference": ["1:b", "\\\\w", "/a b", "/%zz", "//a@b@c/", "é"],
    "iri": ["/abc", "\\\\é", "http://[2001::ffff:192.168.0.01]", "http://é\n"],
    "iri-reference": ["#ƒ\\m", " ", "<>"],
    "uri-template": ["{term", "{}", "{a,,b}", "{v:0}", "{a..b}", "a b", "foo}bar", "{var=d}", "{!x}", "{a,}"],
    "uuid": ["2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4ga-73b441d16380"],
    "json-pointer": ["a", "/~", "/~2", "#/a"],
    "relative-json-pointer": ["", "/a", "-1", "01", "0##", "1#/a", "0/~2"],
    "regex": ["(", "^(abc]", "a)", "*a", "a**", "[b-a]", "[", "\\", "a{2,1}", "(?P<n>a)", "^*", "(?=a)*", "\\y"]}


def sampled(dfa: Dfa, source: random.Random) -> str:
    """A random accepted text of some tens of characters."""
    nearest, state, chars = dfa.shortest(), 0, []
    while not (dfa.accepting[state] and (not dfa.edges[state] or source.random() < 0.1 or len(chars) > 30)):
        edges = dfa.edges[state]
        if len(chars) > 30:
            edges = [edge for edge in edges if nearest[edge[2]] < nearest[state]]
        first, last, state = source.choice(edges)
        chars.append(chr(source.choice([first, last, source.randint(first, last)])))
    return "".join(chars)


def changed(text: str, source: random.Random) -> str:
    at, sign = source.randrange(len(text) + 1), source.choice(SIGNS)
    return source.choice([text[:at] + sign + text[at:], text[:at] + text[at + 1:], text[:at] + sign + text[at + 1:]])


def is_written(name: str, text: str) -> bool:
    return len(text) <= formats.LONGEST.get(name, len(text)) and formats.inner(name).accepts(text)


def test_every_format_has_examples():
    assert set(GOOD) == set(BAD) == set(formats.ENFORCED)


def test_jsonschema_judges_every_format():
    """Its optional packages are test dependencies of this project."""
    assert set(JUDGED) == set(formats.ENFORCED)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in GOOD.items() for text in texts])
def test_a_good_example_is_written_and_its_negation_excludes_it(name, text):
    assert is_written(name, text)
    assert CHECKER.conforms(text, name)
    if name in formats.NEGATABLE:
        assert formats.outer(name).accepts(text)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BAD.items() for text in texts])
def test_a_bad_example_is_never_written(name, text):
    assert not is_written(name, text)


@pytest.mark.parametrize("name", JUDGED)
def test_what_is_written_conforms(name):
    source = random.Random(name)
    texts = [sampled(formats.inner(name), source) for _ in range(30 if name in SLOW else 300)]
    texts += [text for text in (changed(text, source) for text in texts) if is_written(name, text)]
    assert [text for text in texts if len(text) <= formats.LONGEST.get(name, 999) and not CHECKER.conforms(text, name)] == []


@pytest.mark.parametrize("name", sorted(formats.NEGATABLE))
def test_what_a_negation_allows_conforms_to_no_reader(name):
    source = random.Random(name)
    texts = [sampled(formats.inner(name), source) for _ in range(30 if name in SLOW else 300)]
    assert [text for text in texts if not formats.outer(name).accepts(text)] == []
    texts = [changed(changed(text, source), source) for text in texts]
    assert [text for text in texts if not formats.outer(name).accepts(text) and CHECKER.conforms(text, name)] == []


@pytest.mark.parametrize(("name", "text"), [
    ("date", "0000-01-01"), ("date-time", "1998-12-31T23:59:60Z"), ("time", "12:30:00"), ("time", "23:59:60Z"), ("uri", "http://h/\n"),
    ("hostname", "example.com."), ("iri", "http://a/\U00010000"), ("iri", "http://[2001:db8::1]"), ("uri-template", "{v:1000}"),
    ("relative-json-pointer", "100"), ("duration", "-P1.5D"), ("email", "a@b@c")])
def test_a_negation_excludes_what_only_some_readers_accept(name, text):
    assert not is_written(name, text)
    assert formats.outer(name).accepts(text)


@pytest.mark.parametrize("name", sorted(formats.NEGATABLE - {"uri-reference", "iri-reference"}))
def test_a_negation_leaves_something(name):
    left = automata.complement(formats.outer(name), automata.Budget())
    assert left is not None
    assert left.accepts({"json-pointer": "x", "uri-template": "{"}.get(name, "no such ~ thing"))


def test_every_regex_written_compiles_in_python_without_a_warning():
    source = random.Random(5)
    for _ in range(300):
        re.compile(sampled(formats.inner("regex"), source))


@pytest.mark.parametrize("name", sorted(formats.ENFORCED))
def test_the_automaton_of_a_format_is_small(name):
    """It is a part of every grammar that names the format."""
    assert len(formats.inner(name).edges) < 2_500
