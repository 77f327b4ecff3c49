"""Who is calling, and which cache domain is theirs.

A key is compared by its hash and in constant time. The cache domain is derived from the tenant that the key names;
a caller's `cache_salt` only narrows it, so no caller can reach another tenant's blocks by naming a salt.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request

from gateway.errors import OperatorOnly, Unauthorised
from prefix_cache.domain import cache_domain

ANONYMOUS = "anonymous"                      # the one tenant of a gateway without keys


@dataclass(frozen=True, slots=True)
class Tenant:
    """All callers whose keys bear one name."""

    name: str


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


class Admission:
    """The keys of one gateway. Without keys everyone who can connect is the tenant `anonymous`."""

    def __init__(self, api_keys: Sequence[str], cache_secret: bytes, admin_key: str = "") -> None:
        """`api_keys`: "name:key" each; several keys may bear one name, which is how keys are rotated.

        `admin_key`: the operator's, who is no tenant; empty: there is none.
        """
        self._operator = _digest(admin_key) if admin_key else None
        self._secret = cache_secret or secrets.token_bytes(32)
        self._keys: list[tuple[bytes, Tenant]] = []
        for entry in api_keys:
            name, _, key = entry.partition(":")
            if not name or not key:
                raise ValueError("an API key is written name:key")
            self._keys.append((_digest(key), Tenant(name)))

    @property
    def open(self) -> bool:
        return not self._keys

    def tenant_of_key(self, key: str) -> Tenant | None:
        """Every key is compared, whichever matches: the time taken tells nothing."""
        given, found = _digest(key), None
        for digest, tenant in self._keys:
            if hmac.compare_digest(given, digest):
                found = tenant
        return found

    def authorise(self, request: Request) -> Tenant:
        """The tenant of a request, by its header `Authorization: Bearer KEY` or `x-api-key: KEY`.

        Raises Unauthorised where keys are set and none fits.
        """
        if self.open:
            return Tenant(ANONYMOUS)
        key = _key_in(request)
        if key is None:
            raise Unauthorised("No API key was given. Send it in the header 'Authorization: Bearer YOUR_KEY'.")
        tenant = self.tenant_of_key(key)
        if tenant is None:
            raise Unauthorised("Incorrect API key. Check the key in the header 'Authorization: Bearer YOUR_KEY'.")
        return tenant

    def authorise_operator(self, request: Request) -> None:
        """Raises OperatorOnly where no operator's key is set, and Unauthorised where the request bears another one."""
        if self._operator is None:
            raise OperatorOnly
        key = _key_in(request)
        if key is None or not hmac.compare_digest(_digest(key), self._operator):
            raise Unauthorised("This needs the operator's key (setting admin_key) in the header 'Authorization: Bearer KEY'.")

    def cache_domain(self, tenant: Tenant, salt: str | None) -> bytes:
        return cache_domain(self._secret, tenant.name, salt)


def _key_in(request: Request) -> str | None:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip()
    return request.headers.get("x-api-key") or None


def authorise(request: Request) -> Tenant:
    """The tenant of a request to this application. Raises Unauthorised (401)."""
    admission: Admission = request.app.state.admission
    return admission.authorise(request)


def authorise_operator(request: Request) -> None:
    """Raises where a request to this application isn't the operator's."""
    admission: Admission = request.app.state.admission
    admission.authorise_operator(request)
