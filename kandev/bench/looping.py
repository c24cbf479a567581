"""Makes the benchmark's own process a member of the installation: registered, linked, publishing."""

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from kandev import layerlink, publisher
from kandev.demo.processes import LocalError
from tasks import instances

T = TypeVar("T")


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="bench-loop", daemon=True).start()

    def run(self, work: "Coroutine[Any, Any, T]") -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)


@contextmanager
def member() -> Iterator[Loop]:
    made = Loop()
    instances.register()
    instances.mark_ready()
    layerlink.start(made.loop)
    publisher.start(made.loop)
    deadline = time.monotonic() + 10
    while not layerlink.connected():
        if time.monotonic() > deadline:
            raise LocalError("the channel layer is not reachable")
        time.sleep(0.05)
    try:
        yield made
    finally:
        publisher.stop()
        layerlink.stop()
        instances.end()
