"""Keys and values of prompt prefixes, kept in a radix tree and shared by the requests that begin alike."""

from __future__ import annotations

from prefix_cache.cache import PrefixCache
from prefix_cache.domain import cache_domain
from prefix_cache.errors import CacheError, InvalidCommit, InvalidTokens, LeaseEnded, PoolExhausted
from prefix_cache.lease import Lease
from prefix_cache.stats import CacheStats
from prefix_cache.tree import pack_tokens

__all__ = [
    "CacheError",
    "CacheStats",
    "InvalidCommit",
    "InvalidTokens",
    "Lease",
    "LeaseEnded",
    "PoolExhausted",
    "PrefixCache",
    "cache_domain",
    "pack_tokens",
]
