"""Requests to an endpoint: sent once more where that may help, and otherwise told. Standard library
only.

Sent once more, after a pause that doubles each time, or as long as the endpoint asks for: after 429
and other refusals that pass, time-outs, broken connections, and answers that are no JSON or lack
what was asked for.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable
from typing import Any

from tasktransfer.errors import EndpointError

PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Refusals that may be over when the request is sent once more."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Seconds."""
LONGEST_ASKED = 600.0
"""Of a pause that an endpoint asks for."""
SHOWN = 300
"""Characters of an endpoint's own words in a message."""
HERE = ("localhost", "127.0.0.1", "::1")
"""Hosts that no proxy leads to."""


class RefusedError(Exception):
    """The endpoint does not take a request. ``status``: of HTTP."""

    def __init__(self, status: int, url: str, message: str) -> None:
        super().__init__(f"{url}: {status}: {message}")
        self.status = status

    def told(self) -> EndpointError:
        """As an error for people."""
        return EndpointError(f"{self}; check endpoint and served of this prompted model")


class UnreadableError(Exception):
    """Answers stay unreadable, however often the request is sent."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirection would carry the key to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client:
    """Sends requests below a URL. ``retried``: how often one was sent once more, by reason."""

    def __init__(self, url: str, key_variable: str, *, retries: int, timeout: float) -> None:
        self.url = url.rstrip("/")
        self.retries, self.timeout = retries, timeout
        self.retried: Counter[str] = Counter()
        self._key_variable = key_variable
        self._lock = threading.Lock()
        direct = urllib.parse.urlsplit(url).hostname in HERE
        proxies = [urllib.request.ProxyHandler({})] if direct else []
        self._opener = urllib.request.build_opener(_NoRedirect, *proxies)

    def ask(
        self,
        path: str,
        body: Any,
        read: Callable[[Any], dict[str, Any]],
        *,
        patient: bool = True,
    ) -> dict[str, Any]:
        """What ``read`` makes of the answer, which raises KeyError, IndexError, TypeError,
        AttributeError or ValueError where it cannot be read.

        Args:
            patient: send a request once more whose answer is JSON and cannot be read.

        Raises:
            RefusedError: the endpoint does not take it.
            UnreadableError: it answers, and nothing of it can be read.
            EndpointError: the key is refused, or it cannot be reached.
        """
        url = f"{self.url}/{path}"
        last = ""
        for attempt in range(self.retries + 1):
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt) * random.uniform(0.5, 1.0)
            try:
                return read(json.loads(self._send(url, body)))
            except urllib.error.HTTPError as error:
                message = self._words(error)
                if error.code in (401, 403):
                    raise self._no_key(url, error.code, message) from error
                if error.code not in PASSING:
                    raise RefusedError(error.code, url, message) from error
                reason, last = f"retried_{error.code}", f"{error.code}: {message}"
                pause = max(pause, _asked_for(error.headers.get("Retry-After")))
            except TimeoutError:
                reason, last = "retried_timeout", f"no answer within {self.timeout:g} s"
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                late = isinstance(getattr(error, "reason", None), TimeoutError)
                reason = "retried_timeout" if late else "retried_connection"
                last = self._hidden(str(getattr(error, "reason", error)) or repr(error))
            except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
                reason, last = "retried_unreadable", self._hidden(f"{error!r}")
                if not patient and not isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
                    break
            if attempt < self.retries:
                with self._lock:
                    self.retried[reason] += 1
                time.sleep(pause)
        if reason == "retried_unreadable":
            raise UnreadableError(f"{url}: its answers cannot be read: {last[:SHOWN]}")
        raise EndpointError(
            f"{url}: no answer after {self.retries + 1} requests: {last[:SHOWN]}; what was "
            "answered is kept: start the endpoint, and start again"
        )

    def _send(self, url: str, body: Any) -> bytes:
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(self._key_variable):
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with self._opener.open(request, timeout=self.timeout) as answer:
            read: bytes = answer.read()
            return read

    def _no_key(self, url: str, status: int, message: str) -> EndpointError:
        there = "is not taken" if os.environ.get(self._key_variable) else "is not set"
        return EndpointError(
            f"{url}: {status}: {message}; the key in the environment variable {self._key_variable} "
            f"{there}: set it, or name another by key_variable of this prompted model"
        )

    def _words(self, error: urllib.error.HTTPError) -> str:
        try:
            message = error.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            message = str(error.reason)
        return self._hidden(" ".join(message.split()))[:SHOWN]

    def _hidden(self, text: str) -> str:
        """An endpoint's words without the key, which it may repeat."""
        key = os.environ.get(self._key_variable)
        return text.replace(key, "(key)") if key else text


def _asked_for(seconds: str | None) -> float:
    """The pause that an endpoint asks for, in seconds."""
    try:
        return min(LONGEST_ASKED, max(0.0, float(seconds or 0)))
    except ValueError:  # a date
        return 0.0
