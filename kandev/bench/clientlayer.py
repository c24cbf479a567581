"""What the channel layer itself takes from one process to another."""

import asyncio
import time
from typing import Any

GROUP = "bench-delay"


class Listener:
    """Notes how long each message to the group was on its way."""

    def __init__(self) -> None:
        self._delays: list[float] = []
        self._task: asyncio.Task[None] | None = None

    async def listen(self, url: str) -> dict[str, Any]:
        from channels_redis.pubsub import RedisPubSubChannelLayer

        layer = RedisPubSubChannelLayer(hosts=[url])
        channel = await layer.new_channel()
        await layer.group_add(GROUP, channel)
        self._task = asyncio.create_task(self._receive(layer, channel))
        return {}

    async def _receive(self, layer: Any, channel: str) -> None:
        while True:
            message = await layer.receive(channel)
            self._delays.append(time.monotonic() - message["sent"])

    async def delays(self, count: int) -> dict[str, Any]:
        """The first `count` of them, or what has come within five seconds."""
        for _ in range(500):
            if len(self._delays) >= count:
                break
            await asyncio.sleep(0.01)
        found, self._delays = self._delays, []
        return {"delays": found[:count]}
