"""Beam search: against `generate` of transformers on a tiny model, against looking at every answer, and on a full pool."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import PreTrainedModel

from kernels.ops import load_ops
from prefix_cache.pool import Owner
from runtime.config import EngineConfig
from runtime.engine import Engine
from runtime.loading import load_model
from runtime.protocol import BeamParams, Beams, Failed, Finished, Found, GenerationRequest, GrammarSpec, SamplingParams
from runtime.tokenizer import load_tokenizer
from tests.runtime.test_engine import EOS, TOKENIZER, Clock, make_engine, prompts, request, run, tokens
from tests.support.counting_model import CountingModel
from tests.support.tiny_models import save_folder, tiny_llama

END_IDS = [2, 0]
PROMPT = [5, 6, 7, 40, 41, 42, 43, 44, 45, 46]


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> tuple[Engine, PreTrainedModel]:
    """A tiny model whose ends of sequence are likely, so that searches end before their last token; and an engine with it."""
    model = tiny_llama(3)
    with torch.no_grad():
        model.get_input_embeddings().weight[END_IDS] *= 2.5
    return tiny_engine(save_folder(tmp_path_factory.mktemp("beams"), model)), model


def tiny_engine(folder: Path, n_blocks: int = 64, **settings) -> Engine:
    ops = load_ops(torch.device("cpu"), "reference")
    config = EngineConfig(folder, "tiny", **{"block_tokens": 4, "step_tokens": 64, "max_running": 16, **settings})
    return Engine(config, load_model(folder, torch.device("cpu"), ops), load_tokenizer(folder), ops, n_blocks, Clock())


def search(name: str, prompt: list[int], n: int = 8, grammar: GrammarSpec | None = None, sampling: dict | None = None,
           width: int = 4, told: int | None = None, **beams) -> GenerationRequest:
    params = SamplingParams(max_tokens=n, temperature=0.0, **(sampling or {}))
    return GenerationRequest(name, tuple(prompt), params, b"d", grammar, beams=BeamParams(width, told or width, **beams))


def found(events) -> list[Found]:
    assert [type(event) for event in events] == [Beams, Finished], events
    return list(events[0].answers)


def searched(engine: Engine, asked: GenerationRequest) -> list[Found]:
    return found(run(engine, asked)[asked.request_id])


def by_transformers(model: PreTrainedModel, prompt: list[int], n: int, width: int, **settings) -> list[tuple[list[int], float]]:
    """Token ids without padding, and scores, best first."""
    answer = model.generate(
        torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), max_new_tokens=n, num_beams=width,
        num_return_sequences=width, do_sample=False, eos_token_id=END_IDS, pad_token_id=1, return_dict_in_generate=True,
        output_scores=True, **settings)
    return [(_until_end(row[len(prompt):].tolist()), score)
            for row, score in zip(answer.sequences, answer.sequences_scores.tolist(), strict=True)]


def _until_end(ids: list[int]) -> list[int]:
    ends = [i for i, token in enumerate(ids) if token in END_IDS]
    return ids[:ends[0] + 1] if ends else ids


@pytest.mark.parametrize("early_stopping", [False, True, "never"])
@pytest.mark.parametrize("length_penalty", [1.0, 0.0, -0.5, 2.0])
@pytest.mark.parametrize("width", [2, 3, 5])
def test_answers_and_scores_are_those_of_transformers(eager, width: int, length_penalty: float, early_stopping) -> None:
    engine, model = eager
    n_short = 0
    for prompt in (PROMPT, PROMPT[:4], [9, 200, 31]):
        settings = {"length_penalty": length_penalty, "early_stopping": early_stopping}
        theirs = by_transformers(model, prompt, 12, width, **settings)
        ours = searched(engine, search("a", prompt, 12, width=width, **settings))
        assert [list(each.token_ids) for each in ours] == [ids for ids, _ in theirs]
        assert [each.score for each in ours] == pytest.approx([score for _, score in theirs], abs=1e-4)
        n_short += sum(len(ids) < 12 for ids, _ in theirs)
    assert n_short or length_penalty == 2.0, "no answer ended by itself: nothing was tested of it"


class Table(CountingModel):
    """A model of six tokens whose logits are a fixed function of the last two."""

    def forward(self, batch, pool):
        super().forward(batch, pool)
        rows = []
        for at in batch.logit_rows.tolist():
            row = int(torch.searchsorted(batch.query_starts[1:].long(), at, right=True))
            length = int(batch.positions[at]) + 1
            table = batch.block_tables[row, : -(-length // pool.shape[4])].long()
            context = pool[0, 0, :, 0, :, 0][table].reshape(-1)[:length].long().tolist()
            rows.append(table_logits(tuple(context[-2:])))
        return torch.stack(rows) if rows else torch.zeros(0, 6)


def table_logits(last: tuple[int, ...]) -> torch.Tensor:
    return torch.randn(6, generator=torch.Generator().manual_seed(hash(last) % 2**31)) * 1.5


SIX = SimpleNamespace(token_bytes=[b"a", b"b", b"c", b"d", b"e", b""], eos_ids=(5,), vocabulary_size=6,
                      special_tokens={}, spelled_out=lambda: [b"a", b"b", b"c", b"d", b"e", b""],
                      encode=lambda text: [ord(letter) - 97 for letter in text])


def test_a_search_as_wide_as_all_answers_finds_the_best_of_all() -> None:
    prompt, n = [0, 1], 3
    scores = {}
    for length in range(1, n + 1):
        for answer in itertools.product(range(6), repeat=length):
            if 5 in answer[:-1] or (answer[-1] != 5 and length < n):
                continue
            text, total = [*prompt], 0.0
            for token in answer:
                total += float(table_logits(tuple(text[-2:])).log_softmax(-1)[token])
                text.append(token)
            scores[answer] = total / length
    best = sorted(scores, key=scores.get, reverse=True)
    engine = make_engine(n_blocks=256, model=Table(), tokenizer=SIX, max_running=32)
    ours = searched(engine, search("a", prompt, n, width=200, told=20, early_stopping="never"))
    assert [each.token_ids for each in ours] == best[:20]
    assert [each.score for each in ours] == pytest.approx([scores[answer] for answer in best[:20]], abs=1e-5)


def doubting_engine(n_blocks: int = 64, **settings) -> Engine:
    return make_engine(n_blocks=n_blocks, model=CountingModel(doubt=3), **settings)


def test_the_prompt_is_computed_once_and_whole_blocks_are_shared() -> None:
    engine = doubting_engine()
    prompt, model = list(range(30)), engine._model
    [*_, finished] = run(engine, search("a", prompt, 9))["a"]
    assert model.n_tokens_computed == len(prompt) + 4 * 8          # eight steps of four beams after the prompt
    assert finished.usage.prompt_tokens == finished.usage.computed_tokens == len(prompt)
    assert finished.usage.completion_tokens == 4 * 9
    assert engine.stats().generated_tokens == 4 * 9


def test_no_step_writes_to_a_block_that_is_shared() -> None:
    engine = doubting_engine()
    forward = engine._model.forward

    def watched(batch, pool):
        for block in set((batch.slots // pool.shape[4]).tolist()):
            assert engine._cache.pool.owner(block) is Owner.PRIVATE
        return forward(batch, pool)

    engine._model.forward = watched
    assert len(searched(engine, search("a", list(range(30)), 25))) == 4


def test_blocks_in_use_grow_with_the_branches_and_not_with_copies_of_the_prompt() -> None:
    engine = doubting_engine(n_blocks=200)
    engine.submit(search("a", list(range(200)), 12))
    most = 0
    while not engine.idle:
        engine.step()
        engine.check()
        most = max(most, engine.stats().pools[0].blocks_used)
    assert 50 < most <= 50 + 4 * (1 + 12 // 4)
    assert engine.stats().pools[0].blocks_used == 0


@pytest.mark.parametrize("settings", [
    {"n_blocks": 12}, {"max_running": 2}, {"step_tokens": 8}, {"n_blocks": 14, "max_running": 3}])
def test_too_little_room_for_all_beams_changes_no_answer(settings) -> None:
    asked = [search(str(i), prompt[:20], 16) for i, prompt in enumerate(prompts(3))]
    roomy = [searched(doubting_engine(200), each) for each in asked]
    engine = doubting_engine(**settings)
    together = run(engine, *asked)
    assert [found(together[each.request_id]) for each in asked] == roomy
    assert not engine.scheduler.parked
    assert engine.stats().pools[0].blocks_used == 0


def test_beams_and_other_requests_beside_each_other_answer_as_alone() -> None:
    plain = [request(str(i), prompt, n=12) for i, prompt in enumerate(prompts(6))]
    alone = [tokens(run(doubting_engine(), each)[each.request_id]) for each in plain]
    wanted = searched(doubting_engine(), search("beams", [1, 2, 3], 12))
    seen = run(doubting_engine(n_blocks=40), *plain[:3], search("beams", [1, 2, 3], 12), *plain[3:])
    assert [tokens(seen[each.request_id]) for each in plain] == alone
    assert found(seen["beams"]) == wanted


def test_the_same_search_cold_or_warm_gives_the_same() -> None:
    engine = doubting_engine()
    cold, warm = (searched(engine, search(name, list(range(29)), 10)) for name in ("cold", "warm"))
    assert cold == warm


def test_a_cancelled_search_leaves_nothing_behind() -> None:
    for n_steps in range(12):
        engine = doubting_engine(n_blocks=14)
        engine.submit(search("a", list(range(20)), 16))
        for _ in range(n_steps):
            engine.step()
        engine.cancel("a")
        engine.check()
        assert engine.idle
        stats = engine.stats()
        assert stats.pools[0].blocks_used == stats.running == stats.waiting == 0


def test_a_row_that_raises_ends_its_search_and_no_other_request() -> None:
    engine = make_engine(model=CountingModel(doubt=3, poison=255))
    bad = search("bad", [4, 5], 8, sampling={"logit_bias": ((255, 100.0),)})
    seen = run(engine, request("good", [1, 2, 3]), bad, search("fine", [6], 5))
    assert [type(event) for event in seen["bad"]] == [Failed]
    assert len(found(seen["fine"])) == 4
    assert isinstance(seen["good"][-1], Finished)
    assert engine.stats().pools[0].blocks_used == 0


def test_every_answer_of_a_search_keeps_its_schema() -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}, "n": {"enum": [1, 22, 333]}},
              "required": ["ok", "n"], "additionalProperties": False}
    answers = searched(doubting_engine(), search("a", [4], 40, GrammarSpec("json_schema", json.dumps(schema)), width=6))
    texts = [each.text for each in answers]
    assert len(set(texts)) == 6                # all there are: two booleans times three numbers
    for text in texts:
        value = json.loads(text)
        assert isinstance(value["ok"], bool)
        assert value["n"] in (1, 22, 333)
    assert {each.reason for each in answers} == {"stop"}


def test_a_search_among_fewer_answers_than_it_is_wide_finds_them_all() -> None:
    answers = searched(doubting_engine(), search("a", [4], 40, GrammarSpec("choice", '["red", "green", "blue"]'), width=8))
    assert {each.text for each in answers} == {"red", "green", "blue"}


def test_scores_are_of_what_the_caller_asked_for() -> None:
    spec = GrammarSpec("choice", '["a", "b"]')
    allowed = searched(doubting_engine(), search("a", [4], 40, spec, {"logprobs_of": "allowed"}, width=2, length_penalty=0.0))
    assert sum(2.718281828 ** each.score for each in allowed) == pytest.approx(1.0, abs=1e-4)
    model = searched(doubting_engine(), search("a", [4], 40, spec, width=2, length_penalty=0.0))
    assert sum(2.718281828 ** each.score for each in model) < 0.9


def test_stop_strings_end_beams_before_them() -> None:
    whole = searched(doubting_engine(), search("a", [70, 71], 12))
    stop = next(text[3:5] for text in (each.text for each in whole) if len(text) > 6)
    for each in searched(doubting_engine(), search("a", [70, 71], 12, sampling={"stop": (stop,)})):
        assert stop not in each.text
        assert each.reason == "stop" or len(each.token_ids) == 12


def test_logprobs_of_a_beam_add_up_to_its_score() -> None:
    for each in searched(doubting_engine(), search("a", [1, 2, 3], 9, sampling={"logprobs": 2})):
        assert each.reason == "length"
        assert [entry.token_id for entry in each.logprobs] == list(each.token_ids)
        assert sum(entry.logprob for entry in each.logprobs) / 9 == pytest.approx(each.score, abs=1e-4)
        assert all(len(entry.top) == 2 for entry in each.logprobs)


def test_min_tokens_and_the_end_of_sequence_hold_in_a_search() -> None:
    bias = ((EOS, 100.0),)
    at_once = searched(doubting_engine(), search("a", [1], 9, sampling={"logit_bias": bias}))
    later = searched(doubting_engine(), search("b", [1], 9, sampling={"logit_bias": bias, "min_tokens": 4}))
    assert [len(at_once[0].token_ids), len(later[0].token_ids)] == [1, 5]
    assert TOKENIZER.eos_ids[0] == later[0].token_ids[-1]


def test_a_full_context_ends_a_search() -> None:
    engine = make_engine(model=CountingModel(doubt=3, context_tokens=40))
    for each in searched(engine, search("a", list(range(30)), 500)):
        assert len(each.token_ids) == 10
        assert each.reason == "length"
