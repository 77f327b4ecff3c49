"""The address that the gateway listens on, taken before anything slow is done."""

from __future__ import annotations

import errno
import socket

from gateway.user_error import UserError


class PortTaken(UserError):
    """Nothing can listen at the address that was asked for."""


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises PortTaken, saying why and what to do."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise PortTaken(f"host {host!r} is no address ({error.strerror}). Choose another one with --host") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)      # a restart need not wait for old connections' ends
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise PortTaken(_why_not(host, port, error)) from error
    return listener


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        other = port + 1 if port < 65535 else 8001
        return f"port {port} on {host} is in use by another program. Choose another one: --port {other} or TURNSTILE_PORT={other}"
    if error.errno == errno.EACCES:
        return f"port {port} on {host} may not be used by this user. Choose one above 1023 with --port"
    return f"can't listen on {host}, port {port}: {error.strerror}. Choose another address with --host and --port"
