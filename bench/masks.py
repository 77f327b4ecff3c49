"""Compare engines that turn JSON schemas into token masks, without a model: verdicts and times, in one run.

    python -m bench.masks --model FILE
    python -m bench.masks --model FILE --peers llguidance,xgrammar --peer-python OTHER/bin/python --data cases=FOLDER

Schemas of our own (bench/masks_schemas.py), those that break engines (bench/masks_worst.py), and with --data those of folders:
files of {"schema": …, "tests": [{"data" or "text": …, "valid": …}]}. Each schema goes through all engines, in an order drawn
anew, before the next, so that other work on the machine hits all alike. Times are CPU time. Time to first mask = compile +
first mask; time between masks = accept a token + fill the next mask. An instance is accepted when each of its tokens is in the
mask before it, and end-of-sequence in the one behind the last. Prints Markdown tables; --write-docs puts them into a page.
Exit code 1: our engine fails a check of the worst cases.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from bench.masks_host import Host
from bench.masks_report import figures, table, worst_table, write_section
from bench.masks_schemas import Case, own_cases
from bench.masks_vocabulary import Tokens, enlarged, model_tokens
from bench.masks_worker import ENGINES
from bench.masks_worst import checks, worst_cases
from bench.serving import machine

PEERS = ("llguidance", "xgrammar")
DEFAULT_MODEL = Path.home() / ".cache" / "turnstile" / "SmolLM2-135M-Instruct.Q4_1.gguf"

Results = dict[str, dict[str, dict[str, Any]]]      # engine -> case -> what came of it


def read_cases(folder: Path, sample: int, seed: int) -> list[Case]:
    """The files of a folder, or so many of them drawn by `seed`; of one seed, fewer are a part of more."""
    files = sorted(folder.rglob("*.json"))
    if sample:
        random.Random(seed).shuffle(files)
        files = files[:sample]
    return [_read_case(file) for file in files]


def _read_case(file: Path) -> Case:
    content = json.loads(file.read_text(encoding="utf-8"))
    if not (isinstance(content, dict) and isinstance(content.get("tests"), list)):
        return Case(file.stem, content, ())         # a bare schema
    instances = [(_text_of(test), bool(test["valid"])) for test in content["tests"]]
    return Case(file.stem, content["schema"], tuple(instances))


def _text_of(test: dict[str, Any]) -> str:
    if "text" in test:
        return str(test["text"])
    text = json.dumps(test["data"], ensure_ascii=False)
    surrogates = any(0xD800 <= ord(char) <= 0xDFFF for char in text)
    return json.dumps(test["data"]) if surrogates else text


def measure(cases: Sequence[Case], hosts: Sequence[Host], tokens: Tokens, seed: int) -> Results:
    """Every case through every engine, interleaved."""
    results: Results = {host.engine: {} for host in hosts}
    rng = random.Random(seed)
    for n, case in enumerate(cases, 1):
        instances = [(tokens.encode(text), valid) for text, valid in case.instances]
        for host in rng.sample(list(hosts), len(hosts)):
            results[host.engine][case.name] = host.run(case.schema, instances)
        if n % 50 == 0:
            print(f"{n} of {len(cases)} schemas", file=sys.stderr, flush=True)
    return results


def data_sets(arguments: argparse.Namespace) -> dict[str, list[Case]]:
    """By name: our own schemas, and those of each folder."""
    sets = {"own schemas": own_cases(arguments.own, arguments.seed)} if arguments.own else {}
    for given in arguments.data:
        name, _, folder = given.rpartition("=")
        sets[name or Path(folder).name] = read_cases(Path(folder), arguments.sample, arguments.seed)
    return sets


def start(arguments: argparse.Namespace, tokens: Tokens) -> list[Host]:
    """The engines that there are; why others are missing goes to standard error."""
    wanted = [*arguments.engines.split(","), *(peer for peer in arguments.peers.split(",") if peer)]
    hosts = [Host(name, arguments.peer_python if name in PEERS else sys.executable, tokens) for name in wanted]
    for host in hosts:
        if host.unavailable:
            print(f"{host.engine}: not available: {host.unavailable}", file=sys.stderr)
    return [host for host in hosts if not host.unavailable]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--model", type=Path, default=DEFAULT_MODEL, help="whose vocabulary is used: a GGUF file or a folder")
    made.add_argument("--vocabulary", type=int, default=0, metavar="N", help="enlarge the vocabulary to N made-up tokens")
    made.add_argument("--engines", default="ours", help="of this repository: ours, ours-any-order (ours)")
    made.add_argument("--peers", default="", help="llguidance, xgrammar: those that are installed are measured too")
    made.add_argument("--peer-python", default=sys.executable, metavar="FILE", help="the interpreter that has the peers")
    made.add_argument("--own", type=int, default=240, metavar="N", help="so many schemas of our own (240)")
    made.add_argument("--data", action="append", default=[], metavar="[NAME=]DIR", help="a folder of case files; may be repeated")
    made.add_argument("--sample", type=int, default=0, metavar="N", help="so many files of each folder, drawn by the seed")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--no-worst", action="store_true", help="leave out the worst cases")
    made.add_argument("--json", type=Path, metavar="FILE", help="write everything here, case by case")
    made.add_argument("--write-docs", type=Path, metavar="PAGE", help="put the tables into this Markdown page")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    unknown = {*arguments.engines.split(","), *arguments.peers.split(",")} - {*ENGINES, ""}
    if unknown:
        parser().error(f"unknown engine {', '.join(sorted(unknown))}; there are {', '.join(ENGINES)}")
    tokens = model_tokens(arguments.model)
    if arguments.vocabulary:
        tokens = enlarged(tokens, arguments.vocabulary, arguments.seed)
    hosts = start(arguments, tokens)
    versions = ", ".join(f"{host.engine} {host.version}" for host in hosts)
    parts = [f"{tokens.name}. {machine()}, CPU time, {date.today().isoformat()}. {versions}."]
    kept: dict[str, Any] = {"machine": parts[0]}
    for name, cases in data_sets(arguments).items():
        results = kept[name] = measure(cases, hosts, tokens, arguments.seed)
        told = {engine: figures(rows) for engine, rows in results.items()}
        parts.append(f"**{name[:1].upper()}{name[1:]}** ({len(cases)})\n\n{table(told)}")
    faults = []
    if not arguments.no_worst:
        results = kept["worst"] = measure(worst_cases(), hosts, tokens, arguments.seed)
        checked = {engine: checks(rows) for engine, rows in results.items()}
        parts.append(f"**Worst cases**: time to compile; slowest step\n\n{worst_table(checked)}")
        faults = [check for engine in checked if engine not in PEERS for check in checked[engine] if check[3].startswith("FAULT")]
    for host in hosts:
        host.close()
    _write(arguments, tokens, "\n\n".join(parts), kept)
    return 1 if faults else 0


def _write(arguments: argparse.Namespace, tokens: Tokens, text: str, kept: dict[str, Any]) -> None:
    print(text)
    if arguments.json:
        arguments.json.write_text(json.dumps(kept), encoding="utf-8")
    if arguments.write_docs:
        write_section(arguments.write_docs, tokens.name, text)


if __name__ == "__main__":
    sys.exit(main())
