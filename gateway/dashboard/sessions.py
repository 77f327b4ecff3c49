"""Signing in to the dashboard with an API key.

The browser gets a cookie that proves it once knew the key and does not tell the key: name, expiry and a
signature. The signing secret is drawn when the gateway starts, so a restart signs everyone out.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

COOKIE = "turnstile_dashboard"
LIFETIME_S = 12 * 3600


class Sessions:
    """Makes and reads the cookies of one gateway. `clock` is the time of day in seconds."""

    def __init__(self, secret: bytes, clock: Callable[[], float]) -> None:
        self._secret = secret
        self._clock = clock

    def issue(self, tenant: str) -> str:
        """A cookie value for `tenant`, good for `LIFETIME_S`. The caller has checked the key."""
        claim = f"{tenant.encode().hex()}.{int(self._clock()) + LIFETIME_S}"
        return f"{claim}.{self._sign(claim)}"

    def tenant(self, cookie: str | None) -> str | None:
        """Whose cookie this is; None if it is forged, damaged or out of date."""
        claim, _, signature = (cookie or "").rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(claim).encode()):
            return None
        name, _, expires_s = claim.partition(".")
        return bytes.fromhex(name).decode() if self._clock() < int(expires_s) else None

    def _sign(self, claim: str) -> str:
        return hmac.new(self._secret, b"dashboard\0" + claim.encode(), hashlib.sha256).hexdigest()
