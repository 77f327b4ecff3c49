"""Fuzzing of the grammar engine: random schemas against `jsonschema`, in both directions.

    python -m bench.grammar_fuzz --cases 20000 --seed 1 --minutes 30 [--gguf MODEL.gguf]

A case is one random schema over the whole keyword list. Random walks along its masks must end in a text that validates, formats
included, whichever of two members of one name a reader keeps, and never in a place without an allowed token. Values that the
validator takes, made without the grammar's code, must be accepted as `json.dumps` writes them, unless the schema is refused. A
schema refused as having no value must have none. Nothing but `SchemaError` may be raised. Every fifth case compares the native
machine's masks with those of the plain one instead. What fails is made smaller until nothing more can be left out, and printed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from bench.wide_schemas import FORMATS, values_for, wide_document
from grammar import CompiledGrammar, GrammarTooLarge, Matcher, SchemaError, Vocabulary, compile_json_schema

END = 256
LONGER = [b'{"', b'":', b'": ', b'", "', b'"}', b'}}', b'"]', b'],', b"abc", b"ab", b"true", b"null", b"00", b"12", b"\\u00",
          "é".encode(), "😀".encode(), "😀".encode()[2:], b"\n  ", b'": [', b"}]}"]
FINISHING = frozenset(b'"}]')
LIKELY = FINISHING | frozenset(',:aebkx-019é\\ '.encode())

FORMAT_TEXTS = frozenset(text for texts in FORMATS.values() for text in texts)

MOST_STEPS = 400            # of one walk
STEPS_BEFORE_HURRY = 60     # then the walk prefers what closes
SLOW_S = 2.0                # CPU time of one compilation
MOST_COMPARING_S = 2.0      # CPU time spent on the plain machine in one case: it is slow, above all with unique items
MOST_TRIALS = 400           # in making one failure smaller

Options = dict[str, str]


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with a schema; `evidence` is the text written, the value refused, or the error."""

    kind: str
    schema: Any
    options: Options
    evidence: Any
    seed: int = 0

    @property
    def signature(self) -> tuple[str, tuple[str, ...]]:
        """Failures of one kind with the same keywords are most likely one fault."""
        return self.kind, tuple(sorted(set(keywords_of(self.schema))))


@dataclass
class Statistics:
    cases: int = 0
    walks: int = 0
    finished: int = 0
    values: int = 0
    compiled: Counter[str] = field(default_factory=Counter)     # by keyword in the schema
    refused: Counter[str] = field(default_factory=Counter)      # by the keyword that the error names
    holding: Counter[str] = field(default_factory=Counter)      # refused schemas, by keyword in the schema


def small_vocabulary() -> Vocabulary:
    """Every byte is a token, and a few longer pieces of JSON are."""
    return Vocabulary([bytes([b]) for b in range(256)] + [b""] + LONGER, eos_ids=[END])


def keywords_of(schema: Any) -> Iterator[str]:
    """All names that stand where a keyword may, more or less."""
    if isinstance(schema, dict):
        for name, inner in schema.items():
            yield name
            if name in ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"):
                for part in inner.values() if isinstance(inner, dict) else ():
                    yield from keywords_of(part)
            elif name not in ("enum", "const", "dependentRequired"):
                yield from keywords_of(inner)
    elif isinstance(schema, list):
        for item in schema:
            yield from keywords_of(item)


def oracle_of(schema: Any) -> Any:
    kind = validator_for(schema, default=Draft202012Validator)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def judged(oracle: Any, value: Any) -> bool | None:
    """Whether a value validates; None where the validator itself fails."""
    try:
        return bool(oracle.is_valid(value))
    except (RecursionError, OverflowError, re.error):
        return None


class Fuzzer:
    """Tries schemas with one vocabulary. `walks` and `values` are tried for each."""

    def __init__(self, vocabulary: Vocabulary, walks: int = 3, values: int = 10) -> None:
        self._vocabulary, self._walks, self._values = vocabulary, walks, values
        self._bytes = vocabulary.size < 1000
        self.statistics = Statistics()

    def case(self, seed: int) -> Failure | None:
        """One random schema, all that is tried with it, and the first thing that goes wrong."""
        r = Random(seed)
        schema = wide_document(r)
        options = {"style": r.choice(["free", "free", "compact", "pretty"]), "property_order": r.choice(["any", "any", "schema"])}
        self.statistics.cases += 1
        return self.examine(schema, options, seed)

    def examine(self, schema: Any, options: Options, seed: int) -> Failure | None:
        def failed(kind: str, evidence: Any) -> Failure:
            return Failure(kind, schema, options, evidence, seed)
        r, oracle = Random(seed), oracle_of(schema)
        began_s = time.process_time()
        try:
            grammar = compile_json_schema(schema, self._vocabulary, **options)  # type: ignore[arg-type]
        except SchemaError as error:
            self.statistics.refused[error.keyword or error.reason.split(":")[0][:60]] += 1
            self.statistics.holding.update(set(keywords_of(schema)))
            if "no value" in error.reason:
                found = next((value for value in self._valid(schema, oracle, r)), _NONE)
                return None if found is _NONE else failed("refused as empty", found)
            return None
        except Exception as error:      # whatever it is, it is what we look for
            return failed("exception", _words(error))
        if time.process_time() - began_s > SLOW_S:
            return failed("slow", f"{time.process_time() - began_s:.1f} s to compile")
        self.statistics.compiled.update(set(keywords_of(schema)))
        try:
            if seed % 5 == 0:
                return self._compared(grammar, r, failed)
            return self._walked(grammar, oracle, r, failed) or self._fed(grammar, schema, options, oracle, r, failed)
        except GrammarTooLarge:
            self.statistics.refused["a mask"] += 1
            return None
        except Exception as error:
            return failed("exception", _words(error))

    # --- what the masks let through validates

    def _walked(self, grammar: CompiledGrammar, oracle: Any, r: Random, failed: Callable[[str, Any], Failure]) -> Failure | None:
        for _ in range(self._walks):
            text, ended = self._walk(grammar, r)
            self.statistics.walks += 1
            if ended is None:
                return failed("dead end", text.decode(errors="replace"))
            if not ended:
                continue
            self.statistics.finished += 1
            try:
                readings = json.loads(text), json.loads(text, object_pairs_hook=lambda pairs: dict(pairs[::-1]))
            except ValueError as error:
                return failed("no JSON", f"{text!r}: {error}")
            if any(judged(oracle, value) is False for value in readings):
                return failed("invalid", text.decode())
        return None

    def _compared(self, grammar: CompiledGrammar, r: Random, failed: Callable[[str, Any], Failure]) -> Failure | None:
        """The native machine and the plain one that defines it have the same masks."""
        plain = CompiledGrammar(grammar.tables, self._vocabulary, "reference")
        until_s = time.process_time() + MOST_COMPARING_S
        for _ in range(self._walks):
            one, other, text = grammar.new_state(), plain.new_state(), b""
            for _ in range(STEPS_BEFORE_HURRY):
                if time.process_time() > until_s:
                    return None
                tokens, others = self._allowed(one), self._allowed(other)
                if tokens != others or one.may_end != other.may_end:
                    differing = sorted(self._vocabulary.token_bytes[token] for token in {*tokens} ^ {*others})
                    return failed("machines differ", f"after {text!r}: {differing[:10]}")
                if not tokens or one.may_end and r.random() < 0.3:
                    break
                token = self._drawn(tokens, False, r)
                if token in self._vocabulary.eos_ids:
                    break
                assert one.accept(token)
                assert other.accept(token)
                text += self._vocabulary.token_bytes[token]
        return None

    def _allowed(self, matcher: Matcher) -> list[int]:
        row = np.zeros((self._vocabulary.size + 31) // 32, dtype=np.uint32)
        matcher.fill_mask(row)
        found: list[int] = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")[:self._vocabulary.size]).tolist()
        return found

    def _walk(self, grammar: CompiledGrammar, r: Random) -> tuple[bytes, bool | None]:
        """A text along the masks, and whether it came to its end; None where no token was allowed."""
        matcher, text, vocabulary = grammar.new_state(), b"", self._vocabulary
        for step in range(MOST_STEPS):
            tokens = self._allowed(matcher)
            if not tokens:
                return text, None
            hurry = step > STEPS_BEFORE_HURRY
            if matcher.may_end and (hurry or r.random() < 0.5):
                matcher.accept(next(iter(vocabulary.eos_ids)))
                return text, matcher.ended
            token = self._drawn(tokens, hurry, r)
            if not matcher.accept(token):
                raise AssertionError(f"token {vocabulary.token_bytes[token]!r} is in the mask after {text!r} but not accepted")
            if matcher.ended:
                return text, True
            text += vocabulary.token_bytes[token]
        return text, False

    def _drawn(self, tokens: list[int], hurry: bool, r: Random) -> int:
        texts = [token for token in tokens if token not in self._vocabulary.eos_ids] or tokens
        if self._bytes and (hurry or r.random() < 0.7):
            wished = FINISHING if hurry and r.random() < 0.8 else LIKELY
            texts = [token for token in texts if token in wished] or texts
        elif hurry:
            closing = [t for t in texts[:2000] if self._vocabulary.token_bytes[t][:1] in (b'"', b"}", b"]")]
            texts = closing if closing and r.random() < 0.8 else texts
        return r.choice(texts)

    # --- what validates can be written

    def _valid(self, schema: Any, oracle: Any, r: Random) -> Iterator[Any]:
        guesses = values_for(schema, r)
        for _ in range(4 * self._values):
            value = next(guesses)
            if judged(oracle, value):
                yield value

    def _fed(self, grammar: CompiledGrammar, schema: Any, options: Options, oracle: Any, r: Random,
             failed: Callable[[str, Any], Failure]) -> Failure | None:
        if options["property_order"] != "any":
            return None
        for n, value in enumerate(self._valid(schema, oracle, r)):
            if n == self._values:
                break
            self.statistics.values += 1
            if self.refuses(grammar, schema, options, value):
                return failed("refused value", value)
        return None

    def refuses(self, grammar: CompiledGrammar, schema: Any, options: Options, value: Any) -> bool:
        """Whether a valid value cannot be written in one of the documented ways."""
        return any(not accepts(grammar, text) for text in written(value, schema, options["style"]))


def accepts(grammar: CompiledGrammar, text: str) -> bool:
    matcher = grammar.new_state()
    return all(matcher.accept(byte) for byte in text.encode()) and matcher.may_end


def written(value: Any, schema: Any, style: str) -> list[str]:
    """The texts of a value that the documents promise; none where it has a spelling of which they promise nothing."""
    keywords = set(keywords_of(schema))
    numbers = list(_floats(value))
    if not json.dumps(value, ensure_ascii=False).isascii() and re.search(r"\\\\[wb]", json.dumps(schema)):
        return []       # letters to Python, and none to ECMA-262
    if style != "free" or "uniqueItems" in keywords:
        value = _integral(value)
    if "multipleOf" in keywords and any("e" in repr(number) for number in numbers):
        return []
    if "format" in keywords and not FORMAT_TEXTS.issuperset(_texts(value)):
        return []       # formats may be narrower than the validator has them
    match style:
        case "free":
            return [json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2)]
        case "compact":
            return [json.dumps(value, ensure_ascii=False, separators=(",", ":"))]
        case _:
            return [json.dumps(value, ensure_ascii=False, indent=2)]


def _floats(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _floats(inner)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(inner)


def _integral(value: Any) -> Any:
    """The same value with integers for 1.0 and the like."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _integral(inner) for name, inner in value.items()}
    return [_integral(inner) for inner in value] if isinstance(value, list) else value


def _words(error: Exception) -> str:
    trace, place = error.__traceback__, ""
    while trace is not None:
        place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__}: {error} ({place})"


_NONE = object()


# --- making failures smaller

def minimised(failure: Failure, fuzzer: Fuzzer) -> Failure:
    """A failure of the same kind whose schema has nothing left to drop, or as small as `MOST_TRIALS` trials made it."""
    trials = 0
    best = failure
    while True:
        for schema in sorted(smaller(best.schema), key=_size):
            trials += 1
            if trials > MOST_TRIALS:
                return best
            found = _still(best, schema, fuzzer)
            if found is not None:
                best = found
                break
        else:
            return best


def _still(failure: Failure, schema: Any, fuzzer: Fuzzer) -> Failure | None:
    """The failure of the same kind that a smaller schema has, if it has one."""
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
        if failure.kind in ("refused value", "refused as empty"):
            return _same_value(failure, schema, fuzzer)
        found = fuzzer.examine(schema, failure.options, failure.seed)
    except Exception:       # no schema any more, or one that the validator cannot judge
        return None
    if found is None or found.kind != failure.kind:
        return None
    if found.kind == "exception" and str(found.evidence).split(":")[0] != str(failure.evidence).split(":")[0]:
        return None
    return found


def _same_value(failure: Failure, schema: Any, fuzzer: Fuzzer) -> Failure | None:
    found = Failure(failure.kind, schema, failure.options, failure.evidence, failure.seed)
    if not judged(oracle_of(schema), failure.evidence):
        return None
    try:
        grammar = compile_json_schema(schema, small_vocabulary_once(), **failure.options)  # type: ignore[arg-type]
    except SchemaError as error:
        return found if failure.kind == "refused as empty" and "no value" in error.reason else None
    refuses = fuzzer.refuses(grammar, schema, failure.options, failure.evidence)
    return found if failure.kind == "refused value" and refuses else None


_VOCABULARIES: list[Vocabulary] = []


def small_vocabulary_once() -> Vocabulary:
    if not _VOCABULARIES:
        _VOCABULARIES.append(small_vocabulary())
    return _VOCABULARIES[0]


def smaller(schema: Any) -> Iterator[Any]:
    """The schemas with one thing less: a member or item left out, or a part replaced by one of its parts or by {}."""
    for path, part in _parts(schema, ()):
        if path:
            yield _without(schema, path)
            if isinstance(part, dict) and part:
                yield _replaced(schema, path, {})
        for inner_path, inner in _parts(part, ()):
            if inner_path and len(inner_path) <= 2 and isinstance(inner, dict) and isinstance(part, dict):
                yield _replaced(schema, path, inner)


def _parts(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    yield path, value
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _parts(inner, (*path, name))


def _replaced(schema: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return deepcopy(value)
    copy = deepcopy(schema)
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = deepcopy(value)
    return copy


def _without(schema: Any, path: tuple[Any, ...]) -> Any:
    copy = deepcopy(schema)
    place = copy
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    return copy


def _size(schema: Any) -> int:
    return len(json.dumps(schema))


# --- command line

def report(statistics: Statistics) -> str:
    """What was tried, and which keywords were compiled and refused how often."""
    lines = [f"{statistics.cases} schemas, {statistics.walks} walks ({statistics.finished} finished), "
             f"{statistics.values} values fed",
             f"{'keyword':24}{'compiled':>10}{'refused':>10}{'blamed':>10}"]
    for keyword in sorted({*statistics.compiled, *statistics.holding}):
        counts = statistics.compiled[keyword], statistics.holding[keyword], statistics.refused[keyword]
        lines.append(f"{keyword:24}" + "".join(f"{count:>10}" for count in counts))
    others = {reason: count for reason, count in statistics.refused.items() if reason not in statistics.holding}
    return "\n".join([*lines, *(f"refused {count} times: {reason}" for reason, count in others.items())])


def shown(failure: Failure) -> str:
    return (f"--- {failure.kind} (seed {failure.seed}, {failure.options})\n"
            f"schema   {json.dumps(failure.schema, ensure_ascii=False)}\n"
            f"evidence {json.dumps(failure.evidence, ensure_ascii=False)}")


def run(cases: int, seed: int, minutes: float, vocabularies: list[Vocabulary]) -> int:
    """Fuzz and print; the number of different failures."""
    until_s = time.monotonic() + 60 * minutes
    fuzzers = [Fuzzer(vocabulary) for vocabulary in vocabularies]
    found: dict[tuple[str, tuple[str, ...]], Failure] = {}
    for n in range(cases):
        if time.monotonic() > until_s:
            break
        fuzzer = fuzzers[n % 4 == 3 and len(fuzzers) > 1]
        failure = fuzzer.case(seed + n)
        if failure is None:
            continue
        least = minimised(failure, Fuzzer(small_vocabulary_once(), walks=12))
        if least.signature not in found:
            found[least.signature] = least
            print(shown(least), flush=True)
    for fuzzer in fuzzers:
        print(report(fuzzer.statistics))
    print(f"{len(found)} different failures")
    return len(found)


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz the grammar engine against jsonschema.")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--gguf", type=Path, help="a model file: every fourth case walks over its vocabulary")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    vocabularies = [small_vocabulary_once()]
    if arguments.gguf:
        from runtime.tokenizer import load_tokenizer
        tokenizer = load_tokenizer(arguments.gguf)
        vocabularies.append(Vocabulary(tokenizer.token_bytes, eos_ids=tokenizer.eos_ids))
    sys.exit(1 if run(arguments.cases, arguments.seed, arguments.minutes, vocabularies) else 0)


if __name__ == "__main__":
    main()
