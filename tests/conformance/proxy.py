"""Stands between the suite, which knows no credentials, and the product: adds the token to each request."""

import asyncio
import threading
from types import TracebackType

HOST = "127.0.0.1"


class Proxy:
    """`with Proxy(port, token) as url`: everything else passes as it is, Host and Origin too."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.line = port, f"Authorization: Bearer {token}\r\nConnection: close\r\n".encode()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        started = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, HOST, 0), self._loop)
        self._server = started.result(10)
        return f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}"

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request a connection: the product closes it after its answer."""
        try:
            first = await reader.readline()
            up, down = await asyncio.open_connection(HOST, self.port)
            down.write(first + self.line)
            await asyncio.wait(
                [asyncio.ensure_future(_pipe(reader, down)), asyncio.ensure_future(_pipe(up, writer))],
                return_when=asyncio.FIRST_COMPLETED,
            )
            down.close()
        except OSError:
            pass
        finally:
            writer.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65536):
        if chunk.lower().startswith(b"connection:"):
            chunk = chunk.split(b"\r\n", 1)[1]
        writer.write(chunk.replace(b"\r\nConnection: keep-alive", b"").replace(b"\r\nconnection: keep-alive", b""))
        await writer.drain()
