"""The bare pieces: a Daphne process with a DRF view that only does the two minimal transactions of an answer, through
psycopg's pool, and a Channels consumer that only passes on what its group is told.

Run as `daphne kandev.bench.bare:application`, with DATABASE_URL and REDIS_URL in the environment.
"""

import os
import uuid
from functools import cache
from typing import Any

from django.conf import settings

REDIS_URL = os.environ.get("REDIS_URL", "")
LAYERS: dict[str, Any] = {
    "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
}
settings.configure(
    SECRET_KEY=uuid.uuid4().hex,
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["rest_framework", "channels"],
    CHANNEL_LAYERS=LAYERS if REDIS_URL else {},
    LOGGING_CONFIG=None,
    REST_FRAMEWORK={
        "DEFAULT_AUTHENTICATION_CLASSES": [],
        "DEFAULT_PERMISSION_CLASSES": [],
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
        "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
        "UNAUTHENTICATED_USER": None,
    },
)

from channels.generic.websocket import AsyncWebsocketConsumer  # noqa: E402
from django.core.asgi import get_asgi_application  # noqa: E402
from django.urls import path  # noqa: E402
from psycopg_pool import ConnectionPool  # noqa: E402

http = get_asgi_application()

from rest_framework.request import Request  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

from kandev.bench.bare_group import GROUP  # noqa: E402

LOCK = "SELECT id FROM tasks_session WHERE id = %s FOR UPDATE"
CLAIM = """UPDATE turns_message SET updated_at = now(),
    metadata = metadata || '{"status": "rejected", "response_delivery_pending": true}' WHERE id = %s"""
FINISH = """UPDATE turns_message SET updated_at = now(),
    metadata = metadata - 'response_delivery_pending' WHERE id = %s"""


@cache
def pool() -> "ConnectionPool[Any]":
    return ConnectionPool(os.environ["DATABASE_URL"], min_size=4, max_size=12)


class Answer(APIView):
    def post(self, request: Request, session: uuid.UUID, message: uuid.UUID) -> Response:
        with pool().connection() as link:
            with link.transaction():
                link.execute(LOCK, [session])
                link.execute(CLAIM, [message])
            with link.transaction():
                link.execute(FINISH, [message])
        return Response({"received": request.data})


class FanOut(AsyncWebsocketConsumer):  # type: ignore[misc]
    async def connect(self) -> None:
        await self.channel_layer.group_add(GROUP, self.channel_name)
        await self.accept()

    async def bench_told(self, event: dict[str, Any]) -> None:
        await self.send(text_data=event["text"])


urlpatterns = [path("answer/<uuid:session>/<uuid:message>", Answer.as_view())]
socket = FanOut.as_asgi()


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    await (socket if scope["type"] == "websocket" else http)(scope, receive, send)
