"""Two connections at once: threads of their own, started together."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Runs the calls at the same moment, each on a connection of its own; exceptions come back as values."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        gate.wait(10)
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - handed to the caller
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def beside(call: Callable[[], Any]) -> Any:
    """The result of a call on another connection."""
    return together(call)[0]
