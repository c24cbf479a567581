"""Permission requests that wait for a person: passed on to the server, answered by it, cancelled with their prompt."""

import asyncio
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from acp.schema import PermissionOption, RequestPermissionResponse, ToolCallUpdate

from turns.runner.frames import Frame, FrameError, PromptKey, clean, text
from turns.runner.outbox import Outbox
from turns.runner.permissions import response
from turns.runner.transcript import tool_data

log = logging.getLogger("kandev.runner")


@dataclass(frozen=True)
class Waiting:
    """`offered` maps each option id as it went over the wire to the agent's own."""

    key: PromptKey
    offered: dict[str, str]
    answer: asyncio.Future[str | None]


class Requests:
    """The open requests of this runner. One that was decided, or whose prompt is over, is forgotten: a later word about
    it changes nothing."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._open: dict[str, Waiting] = {}

    async def ask(
        self, key: PromptKey, tool_call: ToolCallUpdate, options: Sequence[PermissionOption]
    ) -> RequestPermissionResponse:
        """Waits for the server's word, also through lost connections. Without an option there is nothing to ask."""
        offered = {clean(option.option_id): option.option_id for option in reversed(options)}
        if not offered:
            return response(None)
        request_id, answer = str(uuid.uuid4()), asyncio.get_running_loop().create_future()
        self._open[request_id] = Waiting(key, offered, answer)
        self._outbox.ask(request_id, frame(key, request_id, tool_call, options))
        try:
            return response(await answer)
        finally:
            self._open.pop(request_id, None)
            self._outbox.decided(request_id)

    def answer(self, said: Frame) -> None:
        """The server's `permission_answer`: one offered option, or null for cancelled."""
        waiting = self._open.get(text(said, "request_id"))
        option_id = said.get("option_id")
        if not isinstance(option_id, str | None):
            raise FrameError("`option_id` must be a text or null")
        if waiting is None or waiting.answer.done():
            return
        if option_id is not None and option_id not in waiting.offered:
            log.warning("an answer with an option that was not offered counts as cancelled")
        waiting.answer.set_result(waiting.offered.get(option_id) if option_id is not None else None)

    def cancel(self, key: PromptKey) -> None:
        """The prompt is over or is being cancelled: so are its requests."""
        for waiting in self._open.values():
            if waiting.key == key and not waiting.answer.done():
                waiting.answer.set_result(None)


def frame(key: PromptKey, request_id: str, tool_call: ToolCallUpdate, options: Sequence[PermissionOption]) -> Frame:
    offer = [{"option_id": one.option_id, "name": one.name, "kind": one.kind} for one in options]
    title = tool_call.title or ""
    return key.frame("permission", request_id=request_id, title=title, tool=tool_data(tool_call), options=offer)
