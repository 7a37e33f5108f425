"""HTTP requests and responses, limited in time and size, with the standard library only.

urllib limits the time of each single read, so a server that sends a byte from time to time can
block a request for days. Here a timer closes the connection when the request's time is over.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from functools import cache, partial
from typing import Any

from tasktransfer.evaluation.prompting.permissions import is_this_machine


class TransportError(Exception):
    """A request that got no complete response."""


class LateError(TransportError):
    """A request that got no complete response in time."""


class TooLargeError(Exception):
    """A response that is larger than its limit."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response with any status."""

    status: int
    headers: Message
    content: bytes


def post_request(
    url: str, content: bytes, headers: Mapping[str, str], seconds: float, most: int
) -> Response:
    """Send a POST request, and return its response.

    Args:
        seconds: time limit for connection, request and response together.
        most: maximum size of a response in bytes.

    Raises:
        LateError, TransportError: the response is not complete.
        TooLargeError: the response is larger than ``most``.
    """
    request = urllib.request.Request(url, content, dict(headers))
    with _limit_time(seconds) as deadline:
        try:
            with _build_opener(url, deadline).open(request, timeout=seconds) as response:
                read = response.read(most + 1)
                cut_off = response.length not in (None, 0) and len(read) <= most
        except (OSError, http.client.HTTPException, ValueError) as error:
            late = deadline.is_over or _is_timeout(error)
            reason = getattr(error, "reason", error)
            raise LateError if late else TransportError(str(reason) or repr(reason)) from error
        if deadline.is_over:  # A response without a length seems to be complete.
            raise LateError
    if len(read) > most:
        raise TooLargeError
    if cut_off:
        raise TransportError("the connection was closed before the response was complete")
    return Response(response.status, response.headers, read)


def _is_timeout(error: Exception) -> bool:
    return isinstance(error, TimeoutError) or isinstance(
        getattr(error, "reason", None), TimeoutError
    )


class _Deadline:
    """A timer that closes a connection when its time is over."""

    def __init__(self) -> None:
        self.is_over = False
        self._socket: socket.socket | None = None

    def watch(self, connection: socket.socket) -> None:
        self._socket = connection
        if self.is_over:
            self.end()

    def end(self) -> None:
        self.is_over = True
        if self._socket is not None:
            with suppress(OSError):
                # Use the base class: an SSL socket would drop its state, which a read still uses.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


@contextmanager
def _limit_time(seconds: float) -> Iterator[_Deadline]:
    deadline = _Deadline()
    timer = threading.Timer(seconds, deadline.end)
    timer.daemon = True
    timer.start()
    try:
        yield deadline
    finally:
        timer.cancel()


class _Connection(http.client.HTTPConnection):
    def __init__(self, deadline: _Deadline, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._deadline = deadline

    def connect(self) -> None:
        super().connect()
        self._deadline.watch(self.sock)


class _SecureConnection(http.client.HTTPSConnection):
    def __init__(self, deadline: _Deadline, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._deadline = deadline

    def connect(self) -> None:
        super().connect()
        self._deadline.watch(self.sock)


class _Http(urllib.request.HTTPHandler):
    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_Connection, self._deadline), request)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, deadline: _Deadline) -> None:
        super().__init__(context=_load_certificates())
        self._deadline = deadline

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        secure = partial(_SecureConnection, self._deadline)
        return self.do_open(secure, request, context=_load_certificates())


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """A handler that returns every response as it is.

    Redirections are therefore not followed, because they would send the key to another host.
    """

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


@cache
def _load_certificates() -> ssl.SSLContext:
    return ssl.create_default_context()


def _build_opener(url: str, deadline: _Deadline) -> urllib.request.OpenerDirector:
    # Requests to this machine do not use a proxy.
    proxies = [urllib.request.ProxyHandler({})] if is_this_machine(url) else []
    return urllib.request.build_opener(_AnyStatus, _Http(deadline), _Https(deadline), *proxies)
