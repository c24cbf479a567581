"""One MCP endpoint as an ASGI application: a POST in, its answer out, nothing kept in between."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_one
from mcp.server.streamable_http import REQUEST_CANCELLED
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
)
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data, progress_token_from_params
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    DEFAULT_NEGOTIATED_VERSION,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from clarifications.mcp import admitting, cancelling, clients, tools, wire
from clarifications.mcp.admitting import ClientGoneError, Incoming, Receive, RefusedError, Scope, Send
from clarifications.mcp.exchange import CANCELLED, Exchange
from clarifications.mcp.reply import Reply
from tasks.errors import KandevError, translate
from tasks.principals import Principal
from tasks.threads import in_thread

logger = logging.getLogger(__name__)

NO_MESSAGE = ErrorData(code=INVALID_REQUEST, message="the body must be one JSON-RPC request or notification")


@dataclass
class Post:
    """A message that was admitted. `modern` is the era without handshake, which answers errors with an HTTP status."""

    incoming: Incoming
    principal: Principal
    body: dict[str, Any]
    client: str
    modern: bool = field(init=False)
    version: str = field(init=False)

    def __post_init__(self) -> None:
        self.version = self.incoming.headers.get(MCP_PROTOCOL_VERSION_HEADER, DEFAULT_NEGOTIATED_VERSION)
        self.modern = self.version not in HANDSHAKE_PROTOCOL_VERSIONS


class Endpoint:
    """`identify` says whose token gets in; `server` has the tools."""

    def __init__(self, server: Server[Any], identify: Callable[[Incoming], Principal]) -> None:
        self._server, self._identify = server, identify

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = Reply(send)
        try:
            exchange = await self._take(await self._admit(Incoming.of(scope), receive), reply, receive)
        except RefusedError as refusal:
            await reply.refuse(refusal)
        except ClientGoneError:
            return
        else:
            if exchange is not None:
                await self._wait(exchange)

    async def _admit(self, incoming: Incoming, receive: Receive) -> Post:
        admitting.check_origin(incoming)
        try:
            principal = await in_thread(self._identify, incoming)
        except Exception as error:  # noqa: BLE001 - translate logs what is not expected
            raise admitting.refused(translate(error)) from None
        admitting.check_kind(incoming)
        body = _message(await admitting.read_body(incoming, receive))
        post = Post(incoming, principal, body, incoming.headers.get(clients.HEADER, ""))
        if not post.modern and post.client and body.get("method") != "initialize":
            _check_client(post)
        return post

    async def _take(self, post: Post, reply: Reply, receive: Receive) -> Exchange | None:
        """Answers the message, or returns the exchange that is to be waited for; of the message nothing stays."""
        if "method" not in post.body:
            await _take_response(post, reply)
        elif "id" not in post.body:
            await _take_notification(post, reply)
        else:
            return await self._take_request(post, reply, receive)
        return None

    async def _take_request(self, post: Post, reply: Reply, receive: Receive) -> Exchange | None:
        try:
            request = JSONRPCRequest.model_validate(post.body)
        except ValidationError:
            raise _rejected(NO_MESSAGE) from None
        connection = _connection(post, request.id)
        token = progress_token_from_params(request.params)
        exchange = Exchange(post.principal, request.id, token, reply, post.version, post.modern)
        if not post.modern and request.method == "initialize":
            reply.headers["Mcp-Session-Id"] = clients.new(post.principal)
        exchange.begin(receive, cancelling.topic(post.principal, "" if post.modern else post.client, request.id))
        try:
            answer = await self._serve(exchange, request.method, _with_object_arguments(request), connection)
            if exchange.later is not None:
                return exchange
            await _finish(exchange, answer)
        finally:
            if exchange.later is None:
                exchange.close()
        return None

    async def _wait(self, exchange: Exchange) -> None:
        """The second half of a call that waits: what came of it gets the shape that the SDK gives to a result."""
        assert exchange.later is not None
        try:
            exchange.outcome = await tools.outcome(exchange.later)
            meta = {PROTOCOL_VERSION_META_KEY: exchange.version, CLIENT_CAPABILITIES_META_KEY: {}}
            params = {"name": "", "_meta": meta} if exchange.modern else {"name": ""}
            connection = Connection.from_envelope(exchange.version, None, None)
            await _finish(exchange, await self._serve(exchange, "tools/call", params, connection))
        finally:
            exchange.close()

    async def _serve(
        self, exchange: Exchange, method: str, params: dict[str, Any] | None, connection: Connection
    ) -> dict[str, Any]:
        try:
            value = await serve_one(self._server, exchange, method, params, connection=connection, lifespan_state=None)
        except Exception as error:  # noqa: BLE001 - the boundary between a handler and the wire
            return wire.error(exchange.request_id, _error_data(error))
        return wire.result(exchange.request_id, value)


def _message(raw: bytes) -> dict[str, Any]:
    try:
        body = wire.decode(raw)
    except ValueError:
        raise _rejected(ErrorData(code=PARSE_ERROR, message="the body is not valid JSON")) from None
    if not isinstance(body, dict):
        raise _rejected(NO_MESSAGE)
    return body


def _check_client(post: Post) -> None:
    if not clients.is_known(post.principal, post.client):
        raise _rejected(ErrorData(code=INVALID_REQUEST, message="Session not found: initialize again"), status=404)


def _connection(post: Post, request_id: RequestId) -> Connection:
    """What the SDK's kernel needs to know of the client; in the modern era the request says it itself."""
    if not post.modern:
        return Connection.from_envelope(post.version, None, None)
    twice = find_duplicated_routing_header(post.incoming.pairs)
    if twice is not None:
        raise _rejected(ErrorData(code=HEADER_MISMATCH, message=f"{twice} header appears more than once"), request_id)
    route = classify_inbound_request(post.body, headers=post.incoming.headers)
    if isinstance(route, InboundLadderRejection):
        raise _rejected(ErrorData(code=route.code, message=route.message, data=route.data), request_id)
    return Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)


def _with_object_arguments(request: JSONRPCRequest) -> dict[str, Any] | None:
    """Arguments that are no object are given to the tool as one, so that it can say what it expects (B73)."""
    params = request.params
    arguments = params.get("arguments") if params is not None and request.method == "tools/call" else None
    if arguments is None or isinstance(arguments, dict):
        return params
    return {**(params or {}), "arguments": {tools.NOT_AN_OBJECT: arguments}}


async def _take_response(post: Post, reply: Reply) -> None:
    """We ask a client nothing, so a response is one that we need not know; the modern era has none at all."""
    if post.modern or not ("result" in post.body or "error" in post.body):
        raise _rejected(NO_MESSAGE)
    await reply.whole(202)


async def _take_notification(post: Post, reply: Reply) -> None:
    try:
        notification = JSONRPCNotification.model_validate(post.body)
    except ValidationError:
        raise _rejected(NO_MESSAGE) from None
    unserved = unsupported_protocol_version_rejection(post.version) if post.modern else None
    if unserved is not None:
        raise _rejected(ErrorData(code=unserved.code, message=unserved.message, data=unserved.data))
    if notification.method == cancelling.METHOD and not post.modern:
        cancelling.tell(post.principal, post.client, notification.params)
    await reply.whole(202)


async def _finish(exchange: Exchange, answer: dict[str, Any]) -> None:
    """Writes the answer and records whether a connected client got it."""
    gone = await exchange.gone.caught_up()
    if exchange.why == CANCELLED:
        answer = wire.error(exchange.request_id, ErrorData(code=REQUEST_CANCELLED, message="Request cancelled"))
    written_at = timezone.now()
    if not exchange.disconnected:
        code = answer.get("error", {}).get("code")
        await exchange.reply.end(answer, ERROR_CODE_HTTP_STATUS.get(code, 200) if exchange.modern else 200)
    if not gone and exchange.written is not None:
        await exchange.written(written_at)
    elif gone and exchange.lost is not None:
        await exchange.lost()


def _error_data(error: Exception) -> ErrorData:
    known = handler_exception_to_error_data(error)
    if known is not None:
        return known
    if not isinstance(error, KandevError):
        logger.error("MCP request failed", exc_info=error)
    return ErrorData(code=INTERNAL_ERROR, message="Internal server error")


def _rejected(data: ErrorData, request_id: RequestId | None = None, status: int | None = None) -> RefusedError:
    return RefusedError(status or ERROR_CODE_HTTP_STATUS.get(data.code, 400), wire.error(request_id, data))
