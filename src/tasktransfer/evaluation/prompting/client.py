"""Requests to an endpoint, with retries and with errors that quote the endpoint.

A request is retried after temporary refusals (such as 429), time-outs, broken connections, and
answers that cannot be read. It is also retried after pages that are not JSON, which come from a
proxy or from a server that is still loading its model. The pause doubles each time, or lasts as
long as the endpoint requests.
"""

from __future__ import annotations

import json
import random
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from http.client import responses
from math import isfinite
from typing import Any

from tasktransfer.errors import EndpointError, escape_line
from tasktransfer.evaluation.prompting.answers import Answer
from tasktransfer.evaluation.prompting.keys import Key
from tasktransfer.evaluation.prompting.transport import (
    LateError,
    Response,
    TooLargeError,
    TransportError,
    post_request,
)
from tasktransfer.files import json_text

TEMPORARY_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Status codes of temporary refusals, after which a request is retried."""
NOT_FOUND = 404
"""Temporary if the path was supported before, because the server may be reloading its model."""
UNSUPPORTED_STATUSES = frozenset({400, 404, 405, 410, 415, 422, 500, 501})
"""Status codes for a request that the endpoint does not support. Some endpoints fail with 500."""
KEY_STATUSES = frozenset({401, 403})
FIRST_PAUSE, MAX_PAUSE = 0.5, 60.0
"""Bounds of the pause between attempts, in seconds."""
MAX_REQUESTED_PAUSE = 120.0
"""Longest pause in seconds that is granted to an endpoint (``Retry-After``)."""
MIN_REPORTED_PAUSE = 15.0
"""Shortest pause in seconds that is printed."""
MAX_QUOTED_CHARACTERS = 300
"""Maximum number of characters that a message quotes from an endpoint."""

_FILTERED = re.compile(
    r"content[ _-]?(filter|management|policy|moderation)|\bfiltered\b|moderation|flagged|safety",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context[ _-]?(length|window|size)|maximum context|max_model_len|\bn_ctx\b|too many tokens"
    r"|(prompt|input|request)[^.]{0,40}(too long|too large|exceeds)",
    re.IGNORECASE,
)
_RATE_LIMITED = re.compile(
    r"rate.?limit|too many requests|overloaded|capacity|try again|temporarily|loading",
    re.IGNORECASE,
)


_COUNTED_AS = {"not_json": "unreadable"}


class RefusedError(Exception):
    """A request that the endpoint refuses.

    Attributes:
        status: HTTP status.
        words: the endpoint's message.
    """

    def __init__(self, status: int, url: str, words: str) -> None:
        super().__init__(f"{url}: {status}: {words}")
        self.status, self.words = status, words

    @property
    def is_filter(self) -> bool:
        """True if the endpoint's content filter refuses the prompt."""
        return self.status in (400, 403, 422, 451) and bool(_FILTERED.search(self.words))

    def as_endpoint_error(self) -> EndpointError:
        """Convert the refusal to an error with a remedy."""
        if self.status == 413 or _TOO_LONG.search(self.words):
            remedy = (
                "The prompt is longer than the endpoint's limit. Set a smaller max_length for this "
                "prompted model (prompts are truncated assuming three characters per token)."
            )
        elif 300 <= self.status < 400:
            remedy = "Redirections are not followed. Set endpoint to the new address."
        else:
            remedy = "Check the keys `endpoint` and `served` of this prompted model."
        return EndpointError(f"{str(self).rstrip('.')}. {remedy}")


class UnreadableError(Exception):
    """An answer that cannot be read after all retries."""


class _TemporaryError(Exception):
    """A temporary failure, after which the request is retried."""

    def __init__(
        self, reason: str, words: str, pause: float = 0.0, refusal: RefusedError | None = None
    ) -> None:
        super().__init__(words)
        self.reason, self.words, self.pause, self.refusal = reason, words, pause, refusal


class Client:
    """A client that sends requests to paths below a URL.

    Attributes:
        counts: numbers of retries by reason, and of pauses that were shortened.
    """

    def __init__(
        self,
        url: str,
        key_variable: str | None,
        key: Key | None,
        *,
        retries: int,
        timeout: float,
        most_bytes: int,
    ) -> None:
        self.url, self.key_variable = url.rstrip("/"), key_variable
        self.retries, self.timeout, self.most_bytes = retries, timeout, most_bytes
        self.counts: Counter[str] = Counter()
        self.longest_requested_pause = 0.0
        self._key = key
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def request_answer(
        self,
        path: str,
        body: Any,
        read: Callable[[Any], Answer],
        *,
        retry_unreadable: bool = True,
        is_supported: bool = True,
    ) -> Answer:
        """Send a request, retry if necessary, and return the answer.

        Args:
            read: function that parses the JSON of a response. It raises ValueError if there is no
                answer.
            retry_unreadable: whether to retry if the answer is JSON that cannot be read.
            is_supported: whether the endpoint is known to support the path, so that a request that
                is not found is retried.

        Raises:
            RefusedError: the endpoint refuses the request.
            UnreadableError: the endpoint's answers cannot be read.
            EndpointError: the key is refused, or the endpoint cannot be reached.
        """
        url = f"{self.url}/{path}"
        content = json.dumps(body).encode()
        for attempt in range(self.retries + 1):
            try:
                return self._send_once(url, content, read, is_supported)
            except _TemporaryError as error:
                last = error
            if last.reason == "unreadable" and not retry_unreadable:
                break
            if attempt < self.retries:
                self._wait_before_retry(attempt, last)
        if not is_supported and last.refusal and last.refusal.status in UNSUPPORTED_STATUSES:
            raise last.refusal
        raise self._build_final_error(url, last)

    def stop(self) -> None:
        """Stop requests that wait for a retry, because the job fails anyway."""
        self._stopped.set()

    def hide_key(self, text: str) -> str:
        """Shorten a text for a message, and hide the key and control characters."""
        hidden = self._key.hide(text) if self._key else text
        return escape_line(" ".join(hidden.split()))[:MAX_QUOTED_CHARACTERS]

    # --- one attempt ---

    def _send_once(
        self, url: str, content: bytes, read: Callable[[Any], Answer], is_supported: bool
    ) -> Answer:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key.value}"
        try:
            response = post_request(url, content, headers, self.timeout, self.most_bytes)
        except LateError:
            raise _TemporaryError(
                "timeout", f"the answer was not complete within {self.timeout:g} s"
            ) from None
        except TransportError as error:
            raise _TemporaryError("connection", self.hide_key(str(error))) from None
        except TooLargeError:
            raise EndpointError(
                f"{url}: A response is larger than the limit of {self.most_bytes:,} bytes. Check "
                "the endpoint of this prompted model."
            ) from None
        value = _parse_json(response)
        status = _find_error_status(response, value)
        if status is None:
            return self._parse_answer(value, read)
        raise self._build_failure(url, status, response, value, is_supported)

    def _parse_answer(self, value: Any, read: Callable[[Any], Answer]) -> Answer:
        try:
            answer = read(value)
        except ValueError as error:
            words = f"{error}: {_format_json(value)}"
            raise _TemporaryError("unreadable", self.hide_key(words)) from None
        if isinstance(answer.get("text"), str):
            text = _replace_unpaired_surrogates(answer["text"])
            answer["text"] = self._key.hide_in_answer(text) if self._key else text
            with self._lock:
                self.counts["key_in_answers"] += answer["text"] != text
        return answer

    def _build_failure(
        self, url: str, status: int, response: Response, value: Any, is_supported: bool
    ) -> Exception:
        """Return the error for a response without an answer."""
        words = self.hide_key(_describe_failure(response, value)) or responses.get(
            status, "no reason given"
        )
        refused = RefusedError(status, url, words)
        if status in KEY_STATUSES and not refused.is_filter:
            return self._build_key_error(url, status, words)
        is_page = status >= 400 and not isinstance(value, dict)
        if status in TEMPORARY_STATUSES or is_page or (is_supported and status == NOT_FOUND):
            asked = _parse_retry_after(response.headers.get("Retry-After"))
            return _TemporaryError(str(status), f"{status}: {words}", asked, refused)
        return _TemporaryError("not_json", words) if 200 <= status < 300 else refused

    def _build_key_error(self, url: str, status: int, words: str) -> EndpointError:
        if self.key_variable is None:
            problem = "No key was sent, because key_variable is null"
        else:
            state = "is refused" if self._key else "is not set"
            problem = f"The key in the environment variable {self.key_variable} {state}"
        return EndpointError(
            f"{url}: {status}: {words.rstrip('.')}. {problem}. Set it, or name another variable in "
            "key_variable of this prompted model."
        )

    # --- between attempts ---

    def _wait_before_retry(self, attempt: int, failure: _TemporaryError) -> None:
        pause = min(MAX_PAUSE, FIRST_PAUSE * 2**attempt) * random.uniform(0.5, 1.0)
        pause = max(pause, min(MAX_REQUESTED_PAUSE, failure.pause))
        with self._lock:
            self.counts[f"retried_{_COUNTED_AS.get(failure.reason, failure.reason)}"] += 1
            self.counts["pauses_cut_short"] += failure.pause > MAX_REQUESTED_PAUSE
            self.longest_requested_pause = max(self.longest_requested_pause, failure.pause)
        if pause >= MIN_REPORTED_PAUSE:
            print(
                f"{self.url}: {failure.words.rstrip('.')}. The next request is in {pause:.0f} s.",
                file=sys.stderr,
                flush=True,
            )
        if self._stopped.wait(pause):
            raise EndpointError(
                f"{self.url}: The request was cancelled, because another request failed."
            )

    def _build_final_error(self, url: str, last: _TemporaryError) -> Exception:
        if last.reason in ("unreadable", "not_json"):
            return UnreadableError(f"{url}: The answers cannot be read ({last.words})")
        asked = f" (it requests a pause of {last.pause:,.0f} s)" if last.pause else ""
        return EndpointError(
            f"{url}: There is no answer after {self.retries + 1} requests ({last.words}){asked}. "
            "Start the endpoint, and run the command again. Finished answers are cached."
        )


def _parse_json(response: Response) -> Any:
    """Parse a response as JSON, or return None for other responses."""
    try:
        return json_text.loads(response.content, keep_halves=True)
    except ValueError:
        return None


def _format_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "the JSON is nested too deeply"


def _find_error_status(response: Response, value: Any) -> int | None:
    """Find the error status of a response, or return None if it contains an answer.

    A response with the status 200 may report an error, too.
    """
    if not 200 <= response.status < 300:
        return response.status
    if not isinstance(value, dict):
        return 200
    error = _find_error(value)
    if error is None:
        return None
    code = error.get("code", error.get("status")) if isinstance(error, dict) else None
    if str(code).isdecimal() and 400 <= int(str(code)[:4]) < 600:
        return int(str(code)[:4])
    return 429 if _RATE_LIMITED.search(_format_json(error)) else 400


def _find_error(value: dict[str, Any]) -> Any:
    """Find the error in a JSON object, or return None."""
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    inner = first.get("error") if isinstance(first, dict) else None
    error = value.get("error") or inner
    if not error and "choices" not in value and value.get("object") == "error":
        return value
    return error or None


def _describe_failure(response: Response, value: Any) -> str:
    """Return how the endpoint describes a failure."""
    if isinstance(value, dict):
        error = _find_error(value) or value
        message = error.get("message") if isinstance(error, dict) else error
        code = error.get("code") if isinstance(error, dict) else None
        if isinstance(message, str) and message.strip():
            is_new = isinstance(code, str) and not code.isdecimal() and code not in message
            return f"{message} ({code})" if is_new else message
        return _format_json(error)
    if encoding := response.headers.get("Content-Encoding"):
        return f"the answer is compressed ({encoding}), which was not requested"
    if location := response.headers.get("Location"):
        return f"the address has moved to {location}"
    if response.headers.get_content_type() == "text/event-stream":
        return "the answer is a stream, which was not requested"
    text = response.content[: 64 * MAX_QUOTED_CHARACTERS].decode("utf-8", "replace")
    return f"the answer is not JSON: {text}" if text.strip() else ""


def _parse_retry_after(value: str | None) -> float:
    """Parse the pause in seconds from ``Retry-After`` (a number or a date)."""
    if not value:
        return 0.0
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            seconds = moment.timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return max(0.0, seconds) if isfinite(seconds) else 0.0


def _replace_unpaired_surrogates(text: str) -> str:
    """Replace unpaired surrogates in a text, because they cannot be written to a file."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
