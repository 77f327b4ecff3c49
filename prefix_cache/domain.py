"""Cache domains: who may find whose blocks."""

from __future__ import annotations

import hashlib
import hmac

_LABEL = b"turnstile cache domain 1"
_EPOCH_LABEL = b"turnstile cache domain in an epoch 1"
_SECRET_BYTES_LEAST = 16


def cache_domain(secret: bytes, tenant: str, salt: str | None = None) -> bytes:
    """The 32-byte key of the tree in which a request looks for its prefix and leaves its blocks.

    `tenant` is the authenticated tenant, never a name that the caller chose. `salt` is the caller's: it can
    split the tenant's domain into smaller ones, and can't lead out of it, because the tenant is part of the
    key in any case. Without `secret`, which only the server knows, no domain can be computed or guessed.

    HMAC-SHA256 (RFC 2104) over fields that carry their lengths, so that no two pairs of tenant and salt
    spell the same message.
    """
    if len(secret) < _SECRET_BYTES_LEAST:
        raise ValueError(f"the cache secret has {len(secret)} bytes: give at least {_SECRET_BYTES_LEAST} random ones")
    name = tenant.encode()
    message = _LABEL + len(name).to_bytes(8, "big") + name
    if salt is not None:
        message += b"salt" + salt.encode()
    return hmac.new(secret, message, hashlib.sha256).digest()


def in_epoch(domain: bytes, epoch: bytes) -> bytes:
    """The domain as one epoch's blocks know it: what other weights computed, or lies in another layout, is out of its reach."""
    return hmac.new(epoch, _EPOCH_LABEL + domain, hashlib.sha256).digest()
