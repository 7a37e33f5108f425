"""Permissions for endpoints: the environment variables that may be sent as keys, and the hosts.

A config can come from someone else, so it cannot grant permissions. The user lists variables and
hosts in the environment. This module uses the standard library only.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import urllib.parse
from collections.abc import Iterator

KEY_VARIABLES = "TASKTRANSFER_KEY_VARIABLES"
"""Environment variable that lists the variables whose values may be sent as keys."""
HTTP_HOSTS = "TASKTRANSFER_HTTP_HOSTS"
"""Environment variable that lists other machines to which http:// (unencrypted) is allowed."""
COMMON_VARIABLE, ITS_HOST = "OPENAI_API_KEY", "api.openai.com"
"""Variable that needs no permission for its own host and for this machine."""


def is_this_machine(url: str) -> bool:
    """Return whether requests to a URL stay on this machine."""
    host = _extract_host(url)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host in ("localhost", socket.gethostname().casefold())
    return address.is_loopback or address.is_unspecified


def find_refusals(url: str, variable: str | None) -> Iterator[str]:
    """Yield the reasons why the environment does not allow requests to an endpoint."""
    host = _extract_host(url)
    is_plain = url.casefold().startswith("http:") and not is_this_machine(url)
    if is_plain and host not in _read_names(HTTP_HOSTS):
        yield (
            f"{url} is not encrypted, and {host} is not this machine. Use https://, or allow it "
            f"with `export {HTTP_HOSTS}={host}`"
        )
    if variable is None or not os.environ.get(variable, "").strip():
        return
    usual = variable == COMMON_VARIABLE and (is_this_machine(url) or host == ITS_HOST)
    if not usual and variable.casefold() not in _read_names(KEY_VARIABLES):
        yield (
            f"The key in the environment variable {variable} would be sent to {host}. Allow it "
            f"with `export {KEY_VARIABLES}={variable}`, or name another variable in key_variable "
            "(null to send no key)"
        )


def describe_key(variable: str | None) -> str:
    """Describe the key that is sent to an endpoint, for messages."""
    if variable is None:
        return "without a key"
    is_set = bool(os.environ.get(variable, "").strip())
    return f"with the key in {variable}" + (
        "" if is_set else " (which is not set, so no key is sent)"
    )


def _read_names(name: str) -> set[str]:
    return {part.casefold() for part in re.split(r"[,\s]+", os.environ.get(name, "")) if part}


def _extract_host(url: str) -> str:
    return (urllib.parse.urlsplit(url).hostname or "").rstrip(".").casefold()
