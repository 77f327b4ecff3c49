"""Memory stays flat: a short soak of an engine with a model in memory, and the soak's own verdict."""

from __future__ import annotations

import pytest

from bench.soak import Load, Outcome, Reading, complaints, soak
from tests.runtime.test_engine import make_engine
from tests.support.counting_model import CountingModel

MIB = 1 << 20


def test_hundreds_of_requests_of_all_kinds_a_third_cancelled_leave_nothing_behind() -> None:
    n_requests = 900
    engine = make_engine(n_blocks=96, model=CountingModel(doubt=3), max_running=8, max_waiting=64)
    outcome = soak(engine, Load(250, 60, 12, seed=3), n_requests, in_flight=12, seed=4, n_readings=12)
    engine.check()
    assert list(complaints(outcome)) == []
    assert outcome.finished + outcome.cancelled + outcome.failed == n_requests
    assert outcome.failed == 0
    assert n_requests / 5 < outcome.cancelled < n_requests / 2
    stats = engine.stats()
    assert stats.running == stats.waiting == stats.pools[0].blocks_used == 0
    assert stats.evicted_blocks > 0, "the cache never filled up: growth could hide in it"


def outcome_of(rss_mib: list[int], objects: list[int], blocks: int = 0) -> Outcome:
    return Outcome([Reading(i, m * MIB, o, blocks) for i, (m, o) in enumerate(zip(rss_mib, objects, strict=True))])


@pytest.mark.parametrize(("rss_mib", "objects", "blocks", "words"), [
    ([100, 200, 300, 300, 300, 310], [10, 90, 1000, 1000, 1000, 1001], 0, []),
    ([100, 200, 300, 300, 300, 380], [1000] * 6, 0, ["memory grew by 40.0 MiB"]),
    ([300] * 6, [900, 900, 1000, 1000, 1100, 1100], 0, ["100 more Python objects"]),
    ([300] * 6, [1000] * 6, 3, ["3 blocks are held"]),
])
def test_the_verdict_names_what_grew_after_the_first_third(rss_mib, objects, blocks, words) -> None:
    said = list(complaints(outcome_of(rss_mib, objects, blocks)))
    assert len(said) == len(words)
    assert all(word in sentence for word, sentence in zip(words, said, strict=True))
