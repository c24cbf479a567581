"""People, a workspace with two tasks, and sockets opened as one of the people."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from channels.testing import WebsocketCommunicator
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from tasks import hub, sockets, tokens
from tasks.models import Membership, Role, Session, Task, TokenKind, Workspace
from tests.realtime.redis_server import Redis

SHORT = 0.2


@dataclass
class World:
    """`owner` owns the workspace, `viewer` is a member, `stranger` is neither; `token` is each one's own."""

    owner: User
    viewer: User
    stranger: User
    workspace: Workspace
    task: Task
    session: Session
    other: Task
    token: dict[str, str] = field(default_factory=dict)


def make_task(workspace: Workspace | None, title: str) -> Task:
    now = timezone.now()
    return Task.objects.create(workspace=workspace, title=title, created_at=now, updated_at=now)


def make_session(task: Task, **fields: Any) -> Session:
    now = timezone.now()
    return Session.objects.create(task=task, agent="demo", created_at=now, last_activity_at=now, **fields)


@pytest.fixture
def world(transactional_db: None) -> World:
    people = {name: User.objects.create_user(name, password="first") for name in ("owner", "viewer", "stranger")}
    workspace = Workspace.objects.create(name="Ours", owner=people["owner"])
    Membership.objects.create(workspace=workspace, user=people["viewer"], role=Role.VIEWER)
    task = make_task(workspace, "One")
    made = World(
        people["owner"],
        people["viewer"],
        people["stranger"],
        workspace=workspace,
        task=task,
        session=make_session(task, is_primary=True),
        other=make_task(workspace, "Two"),
    )
    made.token = {name: tokens.mint(TokenKind.PERSONAL, user=person) for name, person in people.items()}
    made.token["agent"] = tokens.mint(TokenKind.SESSION, session=made.session)
    return made


def sign_in(user: User) -> str:
    """A signed-in browser's cookie header."""
    store = SessionStore()
    store[SESSION_KEY] = str(user.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.save()
    return f"sessionid={store.session_key}"


class Socket:
    """A client of `/ws/`, straight on the ASGI application."""

    def __init__(self, headers: dict[str, str]) -> None:
        packed = [(name.encode(), value.encode()) for name, value in {"host": "127.0.0.1:8000", **headers}.items()]
        self.wire = WebsocketCommunicator(sockets.application, "/ws/", headers=packed)

    async def open(self) -> bool:
        accepted, _ = await self.wire.connect(timeout=5)
        return bool(accepted)

    async def hear(self, within: float = 5) -> dict[str, Any]:
        return dict(await self.wire.receive_json_from(within))

    async def heard_nothing(self) -> bool:
        return bool(await self.wire.receive_nothing(timeout=SHORT))

    async def close_code(self, within: float = 8) -> int:
        message = await self.wire.receive_output(within)
        assert message["type"] == "websocket.close", message
        return int(message["code"])

    async def say(self, text: str) -> None:
        await self.wire.send_to(text_data=text)

    async def ask(self, action: str, **payload: Any) -> dict[str, Any]:
        await self.say(json.dumps({"id": 7, "type": "request", "action": action, "payload": payload}))
        return await self.hear()

    async def follow(self, task: Task) -> dict[str, Any]:
        reply = await self.ask("subscribe", task_id=str(task.pk))
        assert reply["type"] == "response", reply
        return dict(reply["payload"])


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    made = Redis(tmp_path)
    yield made
    made.stop()


Connect = Callable[..., Awaitable[Socket]]


@pytest_asyncio.fixture
async def connect(world: World) -> AsyncIterator[Connect]:
    """`await connect("owner")` opens with that one's token; `await connect(cookie=…)` with these headers alone."""
    made: list[Socket] = []

    async def opened(name: str = "", **headers: str) -> Socket:
        bearer = {"authorization": f"Bearer {world.token[name]}"} if name else {}
        made.append(Socket({**bearer, **headers}))
        assert await made[-1].open()
        return made[-1]

    yield opened
    for socket in made:
        await socket.wire.disconnect()


@pytest.fixture(autouse=True)
def nobody_left() -> Iterator[None]:
    """Every subscription of a closed socket is gone."""
    yield
    assert hub.followed() == []
