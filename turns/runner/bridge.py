"""`python -m turns.runner.bridge`: an MCP server on stdio that forwards to Kandev's HTTP endpoint.

For agents that cannot talk to MCP servers over HTTP. The endpoint and its token come by environment
(`KANDEV_MCP_URL`, `KANDEV_MCP_TOKEN`), never on the command line, where every user of the machine could read them.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp import types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server

CONNECT_S, SILENCE_S = 30.0, 300.0


@asynccontextmanager
async def upstream(url: str, token: str) -> AsyncIterator[Client]:
    """A fresh connection for each call, so that a server which was restarted in between takes it as well."""
    timeout = httpx2.Timeout(CONNECT_S, read=SILENCE_S)
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=timeout) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


def bridge(url: str, token: str) -> Server:
    """The MCP server: lists and calls the tools of `url`, with progress. A cancelled call is cancelled there too."""

    async def list_tools(_: ServerRequestContext, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        async with upstream(url, token) as client:
            return await client.list_tools(cursor=params.cursor if params else None)

    async def call_tool(ctx: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            await ctx.session.report_progress(progress, total, message)

        async with upstream(url, token) as client:
            return await client.call_tool(params.name, params.arguments, progress_callback=report)

    return Server("kandev", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve(url: str, token: str) -> None:
    server = bridge(url, token)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


def main() -> None:
    url, token = os.environ.get("KANDEV_MCP_URL", ""), os.environ.pop("KANDEV_MCP_TOKEN", "")
    if not (url and token):
        sys.exit("KANDEV_MCP_URL and KANDEV_MCP_TOKEN must be set")
    asyncio.run(serve(url, token))


if __name__ == "__main__":
    main()
