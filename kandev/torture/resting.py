"""When a torture's rest is over: nothing is open any more, or nothing moves any more."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from kandev.torture.cluster import Cluster

STUCK_S, LONGEST_S = 60.0, 600.0


async def settled(cluster: Cluster, meanwhile: Callable[[], Awaitable[None]] | None = None) -> list[str]:
    """What is left open, as `manage.py doctor` sees it; nothing when all settled.

    A slow machine works its queues off slowly: only when the list has stayed the same for STUCK_S seconds, or has not
    ended after LONGEST_S, it counts. `meanwhile` is awaited before each look.
    """
    started = moved = time.monotonic()
    before = ""
    while True:
        if meanwhile is not None:
            await meanwhile()
        done = await asyncio.to_thread(lambda: cluster.manage("doctor", "--idle", check=False))
        if done.returncode == 0:
            return []
        now = time.monotonic()
        if done.stdout != before:
            before, moved = done.stdout, now
        if now - moved > STUCK_S or now - started > LONGEST_S:
            return [f"not settled, {now - moved:.0f} s without a change: {line}" for line in before.splitlines()]
