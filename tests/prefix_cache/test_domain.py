"""Who may find whose blocks. Each refusal is paired with the hit that shows that the test could have failed."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from prefix_cache import PrefixCache, cache_domain

SECRET = bytes(range(32))
PROMPT = list(range(100))


@pytest.fixture
def cache() -> PrefixCache:
    return PrefixCache(64, 16, clock=lambda: 0.0, ttl_s=60)


def serve(cache: PrefixCache, domain: bytes) -> int:
    """Send the prompt in a domain; returns the tokens that were cached."""
    lease = cache.acquire(domain, PROMPT)
    blocks = lease.blocks + cache.allocate(7 - len(lease.blocks))
    cache.commit(lease, PROMPT, blocks)
    cache.release(lease, blocks)
    return lease.n_tokens


def test_the_same_tenant_hits_and_another_tenant_does_not(cache: PrefixCache) -> None:
    serve(cache, cache_domain(SECRET, "acme"))
    assert serve(cache, cache_domain(SECRET, "umbrella")) == 0
    assert serve(cache, cache_domain(SECRET, "acme")) == 96


def test_a_salt_narrows_the_tenants_domain(cache: PrefixCache) -> None:
    serve(cache, cache_domain(SECRET, "acme", "team a"))
    assert serve(cache, cache_domain(SECRET, "acme")) == 0
    assert serve(cache, cache_domain(SECRET, "acme", "team b")) == 0
    assert serve(cache, cache_domain(SECRET, "acme", "")) == 0
    assert serve(cache, cache_domain(SECRET, "acme", "team a")) == 96


def test_another_tenant_that_sends_the_same_salt_does_not_hit(cache: PrefixCache) -> None:
    serve(cache, cache_domain(SECRET, "acme", "team a"))
    assert serve(cache, cache_domain(SECRET, "umbrella", "team a")) == 0
    assert serve(cache, cache_domain(SECRET, "acme", "team a")) == 96


def test_the_probe_of_another_tenant_leaves_no_trace_in_the_first_ones_tree(cache: PrefixCache) -> None:
    serve(cache, cache_domain(SECRET, "acme"))
    cache.acquire(cache_domain(SECRET, "umbrella"), PROMPT)
    assert cache.flush(cache_domain(SECRET, "umbrella")) == 0
    assert cache.flush(cache_domain(SECRET, "acme")) == 6


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b"), ("ab", None)),
        (("a", "b"), ("ab", "")),
        (("a", None), ("a", "")),
        (("asalt", "b"), ("a", "saltb")),
        (("a", "saltb"), ("asaltb", None)),
        (("é", None), ("e\u0301", None)),
    ],
)
def test_no_two_pairs_of_tenant_and_salt_share_a_domain(one: tuple[str, str | None], other: tuple[str, str | None]) -> None:
    assert cache_domain(SECRET, *one) == cache_domain(SECRET, *one)
    assert cache_domain(SECRET, *one) != cache_domain(SECRET, *other)


def test_a_domain_is_an_hmac_that_the_server_secret_decides() -> None:
    message = b"turnstile cache domain 1" + b"\0\0\0\0\0\0\0\x04acme" + b"saltx"
    assert cache_domain(SECRET, "acme", "x") == hmac.new(SECRET, message, hashlib.sha256).digest()
    assert cache_domain(SECRET, "acme") != cache_domain(bytes(32), "acme")


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        cache_domain(b"password", "acme")
