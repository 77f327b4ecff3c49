"""The text of a context-free grammar: what can be written in Lark's form and in GBNF's, and what is said of mistakes."""

from __future__ import annotations

import json
import time

import pytest

from grammar import GrammarTooLarge, Limits, SchemaError
from grammar.ebnf.common import PATTERNS
from grammar.ebnf.compile import check_ebnf, compile_ebnf
from grammar.errors import EbnfError

JSON_GBNF = r'''
# JSON, with the rule for whitespace that many grammars share
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws (
             string ":" ws value
             ("," ws string ":" ws value)*
           )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,15})? ws
ws     ::= ([ \t\n] ws)?
'''
SQL_LARK = r'''
?start: select_statement
?select_statement: "SELECT " column_list " FROM " table_name   // two comments
?column_list: column_name ("," column_name)*                   # of both kinds
?column_name.2: identifier -> column
?table_name: identifier
?identifier: /[a-zA-Z_][a-zA-Z0-9_]*/
'''


@pytest.mark.parametrize(("grammar", "yes", "no"), [
    ('start: "a" | "b"', ["a", "b"], ["", "ab", "c"]),
    ('start:\n  | "a"\n  | "b" "c"\n', ["a", "bc"], ["", "b"]),
    ('start: "a"\n  "b"\n\n     | "c"', ["ab", "c"], ["a"]),
    ('start: "a"i "B"', ["aB", "AB"], ["ab", "Ab"]),
    ('start: "é"i "ß"i', ["Éß", "éß"], ["Éss"]),
    (r'start: "\n\t\"\\A\u00e9\U0001F600"', ["\n\t\"\\Aé😀"], [""]),
    (r'start: "\ud83d\ude00"', ["😀"], []),
    ('start: ["a"] "b"? "c"* "d"+', ["d", "abccdd", "bd"], ["abc", "aad"]),
    ('start: "a"~2 "b"~1..3', ["aab", "aabbb"], ["ab", "aabbbb"]),
    ('start: "a"{2} "b"{1,3} "c"{,1} "d"{2,}', ["aabdd", "aabbbcdddd"], ["aabccdd", "aabd"]),
    ('start: "a".."c" "α".."γ"', ["bβ"], ["dα"]),
    ("start: /[a-c]+/ /x|y/i", ["abcX", "ay"], ["x", "abz"]),
    (r"start: /a.b/ /c.d/s /e\/f/", ["a-bc\nde/f"], ["a\nbc\nde/f"]),
    (r"start: /(?s:a.)/ /(?i)b/", ["a\nB"], ["a\n"]),
    ("start: /\\d{3}-\\w*/", ["123-", "123-a_9"], ["12-"]),
    ('start: A b\nA: "x" B\nB: "y"+ | "z"\nb: A', ["xyxz", "xyyyxy"], ["xx"]),
    ('%import common.INT\n%import common.CNAME -> NAME\n%import common (WS, DIGIT)\nstart: NAME "=" INT WS DIGIT',
     ["a_1=42 7"], ["1=2"]),
    ('start: a-rule\na-rule: "x"', ["x"], []),
    ('!start: _hidden\n_hidden: "x"', ["x"], []),
    ("start: head TAIL\nhead[lazy]: /.*;/\nTAIL: /[a-z]*/", ["a b;c"], ["a;b;c"]),
    ('start: head "x"\nhead[suffix="<end>"]: /(.|\\n)*/', ["a\n<end>x"], ["<end>a<end>x", "x"]),
    ('start: "" | "a" ""', ["", "a"], ["aa"]),
    ("root ::= 'a' \"b\"", ["ab"], []),
    ("root ::= [a-cx] [^a-c\\n] [-z] [a\\]]", ["xd-]", "ay-a"], ["xa-a", "x\n-a"]),
    ("root ::= . \"!\"", ["\n!", "😀!"], ["!"]),
    (r'root ::= "\x41\u00e9" [\x00-\x1F]', ["Aé\x1f"], ["Aé "]),
    ('root ::= (\n  "a"\n  | "b"\n) rest |\n  "c"\nrest ::= "d"', ["ad", "bd", "c"], ["a"]),
    ("start ::= \"x\"", ["x"], []),
    (SQL_LARK, ["SELECT a,b FROM t"], ["SELECT a, b FROM t", "SELECT FROM t"]),
])
def test_what_can_be_written(vocabulary, admits, grammar, yes, no):
    compiled = compile_ebnf(grammar, vocabulary)
    assert [text for text in yes if not admits(compiled, text)] == []
    assert [text for text in no if admits(compiled, text)] == []


@pytest.mark.parametrize("value", [{}, {"a": [1, -2.5e+10, "x\"\\", None, True, [], {"b": {}}]}, {"é": "\u2028"}])
def test_a_whole_grammar_of_json(vocabulary, admits, value):
    compiled = compile_ebnf(JSON_GBNF, vocabulary)
    for text in (json.dumps(value), json.dumps(value, indent=2), json.dumps(value, separators=(",", ":"), ensure_ascii=False)):
        assert admits(compiled, text)
        assert not admits(compiled, text[:-1])
        assert not admits(compiled, text + ",")


def test_the_form_is_told_by_the_text_or_by_the_caller(vocabulary, admits):
    assert admits(compile_ebnf("start: [ \"a\" ] \"b\"", vocabulary), "b")
    assert admits(compile_ebnf("root ::= [a] \"b\"", vocabulary, syntax="gbnf"), "ab")
    with pytest.raises(EbnfError):
        compile_ebnf("root ::= [a]", vocabulary, syntax="lark")
    with pytest.raises(ValueError, match="syntax must be one of"):
        compile_ebnf("start: \"a\"", vocabulary, syntax="bison")


def test_another_start_rule_may_be_named(vocabulary, admits):
    compiled = compile_ebnf('start: "a"\nother: "b"', vocabulary, start="other")
    assert admits(compiled, "b")
    assert not admits(compiled, "a")


@pytest.mark.parametrize(("text", "accepted"), [
    ("1+2", True), ("1 + 2", True), ("1  +2 ", True), (" 1", False), ("1 2", False), ("1+ /* two */ 2", True)])
def test_ignored_text_may_stand_between_lexemes_and_behind_the_last(vocabulary, admits, text, accepted):
    grammar = 'start: INT ("+" INT)*\n%import common (INT, WS, C_COMMENT)\n%ignore WS\n%ignore C_COMMENT'
    assert admits(compile_ebnf(grammar, vocabulary), text) is accepted


def test_ignored_text_never_stands_inside_a_terminal(vocabulary, admits):
    compiled = compile_ebnf('start: AB "c"\nAB: "a" "b"\n%ignore " "', vocabulary)
    assert admits(compiled, "ab c")
    assert not admits(compiled, "a bc")


@pytest.mark.parametrize(("name", "text"), [
    ("INT", "007"), ("SIGNED_INT", "-1"), ("DECIMAL", "1."), ("DECIMAL", ".5"), ("FLOAT", "1e9"), ("FLOAT", "1.5E-3"),
    ("NUMBER", "7"), ("SIGNED_NUMBER", "+7.0"), ("ESCAPED_STRING", r'"a\"b"'), ("CNAME", "_a1"), ("WORD", "aZ"),
    ("WS", " \t\r\n"), ("NEWLINE", "\r\n\n"), ("C_COMMENT", "/* * / **/"), ("CPP_COMMENT", "// x"), ("SH_COMMENT", "# x"),
    ("SQL_COMMENT", "-- x"), ("HEXDIGIT", "f"), ("WS_INLINE", " \t"), ("LETTER", "q"), ("LCASE_LETTER", "q"),
    ("UCASE_LETTER", "Q"), ("CR", "\r"), ("LF", "\n"), ("DIGIT", "0"), ("SIGNED_FLOAT", "-.5e1"), ("_EXP", "e+1")])
def test_the_common_terminals(vocabulary, admits, name, text):
    assert admits(compile_ebnf(f"start: {name}\n%import common.{name}", vocabulary), text)


def test_every_common_terminal_is_tried():
    tried = {case[0] for case in test_the_common_terminals.pytestmark[0].args[1]}
    assert tried == set(PATTERNS)


@pytest.mark.parametrize("text", ['"a"b"', "/* a */ b */"])
def test_a_string_and_a_comment_end_at_their_first_end(vocabulary, admits, text):
    grammar = "start: ESCAPED_STRING | C_COMMENT\n%import common (ESCAPED_STRING, C_COMMENT)"
    assert not admits(compile_ebnf(grammar, vocabulary), text)


def test_a_schema_in_a_grammar(vocabulary, admits):
    grammar = 'start: "call(" %json {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]} ")"'
    compiled = compile_ebnf(grammar, vocabulary)
    assert admits(compiled, 'call({"n": 1})')
    assert not admits(compiled, 'call({"n": "x"})')


@pytest.mark.parametrize(("grammar", "line", "column", "said"), [
    ("", 1, 1, "no rule 'start'"),
    ("# nothing", 1, 1, "no rule 'start'"),
    ('rule: "a"', 1, 1, "no rule 'start'"),
    ('START: "a"', 1, 1, "no rule 'start'"),
    ('start: "a" b', 1, 12, "there is no rule b"),
    ('start: A\n  | B', 1, 8, "there is no terminal A"),
    ('start: "a\n', 1, 8, 'expected " at the end of the string'),
    ('start: ("a"\n', 2, 1, "expected ) at the end of a group"),
    ('start: ["a" ")"', 1, 16, "expected ] at the end"),
    ('start: "a" )', 1, 12, "expected the end of start"),
    ('start: "a"\n\n  item missing', 3, 3, "there is no rule item"),
    ("start: *", 1, 8, "expected a string, a name"),
    ('start: "a"~3..2', 1, 15, "wrong order"),
    ('start: "a"{x}', 1, 12, "templates are not supported"),
    ('start: "b".."a"', 1, 13, "wrong order"),
    ('start: "ab".."c"', 1, 14, "one character on either side"),
    ('start: /a(/', 1, 8, "never closed"),
    ('start: /a/x', 1, 8, "the flag 'x'"),
    ('start: "a"\nstart: "b"', 2, 1, "defined twice"),
    ("start: A\nA: B\nB: A", 2, 1, "leads back to itself"),
    ('start: A\nA: "a" rule\nrule: "b"', 2, 8, "a rule can't stand in a terminal"),
    ('start: A\nA: %json {}', 2, 4, "only texts"),
    ("start: %json {", 1, 15, "expected a JSON value"),
    ('start: %json {"type": "strnig"}', 1, 8, "strnig"),
    ("%import common.INTEGER\nstart: INTEGER", 1, 16, "no common terminal INTEGER"),
    ("%import python.NAME\nstart: NAME", 1, 1, "expected common"),
    ("%declare A\nstart: A", 1, 1, "%declare is not supported"),
    ("start: sep\nsep{x}: x", 2, 1, "templates are not supported"),
    (r'start: "\q"', 1, 9, "unknown escape"),
    (r'start: "\ud83d"', 1, 8, "half a surrogate pair"),
    ("root ::= [a", 1, 10, "expected ] at the end of the class"),
    ("root ::= [b-a]", 1, 10, "wrong order"),
    ("root ::= a\nb: \"x\"", 2, 1, "expected ::="),
    ("start: $", 1, 8, "unexpected '$'"),
    ("start: " + "(" * 101 + ")" * 101, 1, 109, "nested more than 100 deep"),
    ("start[wild]: \"a\"", 1, 1, "expected lazy"),
    ("start: <|nope|>", 1, 8, "no special token"),
    ("start: <[3]>", 1, 8, "3 is no special token"),
])
def test_a_mistake_is_told_by_its_place_and_what_was_expected(vocabulary, grammar, line, column, said):
    with pytest.raises(EbnfError) as refused:
        compile_ebnf(grammar, vocabulary)
    assert said in str(refused.value)
    assert str(refused.value).startswith(f"line {refused.value.line}, column {refused.value.column}: ")
    assert (refused.value.line, refused.value.column) == (line, column)


def test_a_grammar_without_a_text_is_refused(vocabulary):
    with pytest.raises(SchemaError, match="no text can be derived"):
        compile_ebnf('start: "a" start', vocabulary)


def test_a_grammar_is_checked_without_a_vocabulary():
    check_ebnf("start: <|tool|> <[5-7]> \"a\"")
    with pytest.raises(EbnfError, match="line 1, column 8"):
        check_ebnf("start: b")


def test_an_id_beyond_every_vocabulary_is_refused_without_one():
    with pytest.raises(EbnfError, match="99999999 is no special token"):
        check_ebnf("start: <[99999999]>")


def test_recursion_that_can_be_a_loop_keeps_the_position_small(vocabulary):
    """A list of a thousand items is no stack of a thousand frames, however its recursion is written."""
    for grammar in ('start: "x" start | "x"', 'start: start "x" | "x"', 'start: start "," start | "x"',
                    'start: "x" a\na: "," start | '):
        matcher = compile_ebnf(grammar, vocabulary).new_state()
        text = "x," * 1000 if '","' in grammar else "x" * 1000
        began = time.process_time()
        assert all(matcher.accept(byte) for byte in text.encode())
        assert time.process_time() - began < 2


BOMBS = {
    "counts in counts": "start: " + "(" * 20 + '"a"' + "{100})" * 20,
    "counted terminals": "start: A\nA: " + "(" * 20 + '"a"' + "~100)" * 20,
    "counts of nothing": "start: A\nA: " + "(" * 20 + '""' + "~100000)" * 20,
    "a wide regex": r"start: /(a|b)*a(a|b){18}/",
    "many optional parts": "start: " + "a? " * 5000 + '\na: "(" a ")" | "x"',
    "long chain of terminals": "start: T0\n" + "\n".join(f"T{n}: T{n + 1}" for n in range(5000)) + '\nT5000: "a"',
    "long chain of rules": "start: r0 |\n" + "\n".join(f"r{n}: r{n + 1} \"(\" start" for n in range(5000)) + '\nr5000: "a"',
    "left recursion through many rules": "start: r0\n" + "\n".join(
        f"r{n}: " + " | ".join(f'r{m} "{n}{m}"' for m in range(40)) + ' | "a"' for n in range(40)),
    "everything begins with everything": 'start: start | b\na: start "y"\nb: ("" | b | "y"){2,3} (b | (start | "xy") | d c)\n'
                                         'c: ((b | "xyz") | (("z" c) | "x"~0..2))\nd: (("" | a) "xy"* "")',
    "many alternatives": "start: " + " | ".join(f'"{n}" start' for n in range(20_000)) + " |",
    "a long text": f'start: "{"a" * 500_000}"',
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_compiled_or_refused_within_two_seconds(vocabulary, name):
    began = time.process_time()
    try:
        compile_ebnf(BOMBS[name], vocabulary)
    except GrammarTooLarge as error:
        assert error.limit in Limits.__dataclass_fields__
    assert time.process_time() - began < 2
