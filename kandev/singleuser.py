"""`KANDEV_AUTH=off`, the single-user mode: it serves this machine alone, unless the operator said otherwise.

Refused twice: at the start when the server is told to listen elsewhere, and for each peer that is not on loopback,
since an address to listen on may be rewritten by what stands in front.
"""

import ipaddress
import os
import socket
import sys
from collections.abc import MutableMapping, Sequence
from typing import Any

from django.conf import settings

from tasks import socketauth
from tasks.authentication import auth_off
from tasks.errors import Forbidden

REFUSAL = {"error": "KANDEV_AUTH=off serves callers on this machine only", "code": "forbidden"}
OPTIONS = ("-b", "--bind", "--host", "-h")


class ListensElsewhereError(Exception):
    """The single-user mode was told to listen on an address that others can reach."""


def check_addresses(arguments: Sequence[str] | None = None, host: str | None = None) -> None:
    """ListensElsewhereError when `HOST` or the server's own arguments name more than loopback."""
    if not auth_off() or settings.KANDEV_AUTH_OFF_ANYWHERE:
        return
    named = [
        host if host is not None else os.environ.get("HOST", ""),
        *_told(sys.argv if arguments is None else arguments),
    ]
    for address in filter(None, named):
        if not is_loopback(address):
            raise ListensElsewhereError(
                f"KANDEV_AUTH=off lets everybody in, so it does not listen on {address}; "
                "set KANDEV_AUTH=required, or KANDEV_AUTH_OFF_ANYWHERE=1 if you mean it"
            )


def admits(scope: MutableMapping[str, Any]) -> bool:
    """Whether this request's peer may be served; sockets are judged where their credentials are."""
    try:
        socketauth.check_peer(str((scope.get("client") or [""])[0]))
    except Forbidden:
        return False
    return True


def _told(arguments: Sequence[str]) -> list[str]:
    """The addresses among a server's arguments: `-b ADDRESS`, `--bind=ADDRESS`, `-e tcp:port=…:interface=ADDRESS`."""
    found = []
    for index, argument in enumerate(arguments[1:], 1):
        name, _, value = argument.partition("=")
        if name in OPTIONS:
            found.append(value or "".join(arguments[index + 1 : index + 2]))
        elif argument.startswith("-b") and len(argument) > 2:
            found.append(argument[2:])
        elif "interface=" in argument:
            found.append(argument.split("interface=", 1)[1].split(":", 1)[0].replace("\\", ""))
    return found


def is_loopback(address: str) -> bool:
    """Whether every address behind a name or a literal is on loopback; what cannot be resolved is not."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(address, None)
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(str(entry[4][0])).is_loopback for entry in found)
