"""Server processes on one database, with a Redis between them: started, killed, frozen, cut off and started again."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2

from kandev.demo.processes import ROOT, free_port
from kandev.torture.services import Postgres, Redis

BUDGETS = {
    "KANDEV_CLAIM_TIMEOUT_S": "4",
    "KANDEV_DELIVERY_TIMEOUT_S": "6",
    "KANDEV_PAUSE_GRACE_S": "1",
    "KANDEV_RUNNER_LEASE_S": "8",
    "KANDEV_WATCHDOG_S": "2",
    "KANDEV_WAIT_TIMEOUT_S": "60",
    "KANDEV_KEEPALIVE_S": "1",
    "KANDEV_INSTANCE_LEASE_S": "4",
    "KANDEV_RATE_LOGIN": "1000000/m",
    "KANDEV_RATE_TOKEN": "1000000/m",
    "KANDEV_RATE_ANSWER": "1000000/m",
}
START_S = 60.0


class ClusterError(Exception):
    """The cluster itself could not be started; nothing was tortured."""


class Server:
    """One process, which keeps its port through all its lives."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = environment | {"PORT": str(self.port), "HOST": "127.0.0.1"}
        self._log = log
        self.frozen = False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, failpoint: str = "") -> None:
        """A dead one begins its next life."""
        if self.alive:
            return
        argv = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(self.port), "kandev.asgi:application"]
        environment = self._environment | ({"KANDEV_FAILPOINTS": failpoint} if failpoint else {})
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                argv,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def signal(self, number: int) -> None:
        if self._process is not None and self.alive:
            self._process.send_signal(number)
            self.frozen = number == signal.SIGSTOP or (self.frozen and number != signal.SIGCONT)

    async def ended(self, within: float = 20) -> None:
        async with asyncio.timeout(within):
            while self.alive:  # noqa: ASYNC110 - a process has no event
                await asyncio.sleep(0.05)

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        await self.ended()

    async def ready(self, within: float = START_S) -> None:
        async with asyncio.timeout(within), httpx2.AsyncClient(trust_env=False, timeout=3) as http:
            while not await self._answers(http):
                if not self.alive:
                    raise ClusterError(f"a server ended by itself; its log is {self._log}")
                await asyncio.sleep(0.1)

    async def _answers(self, http: httpx2.AsyncClient) -> bool:
        try:
            return (await http.get(f"{self.url}/readyz")).status_code == 200
        except httpx2.TransportError:
            return False


class Cluster:
    """`database` is sqlite, postgres or a URL of an empty database that may be filled."""

    def __init__(
        self, database: str, processes: int, folder: Path, broken: str = "", settings: dict[str, str] = BUDGETS
    ) -> None:
        self.folder = folder
        self.postgres = Postgres(folder) if database == "postgres" else None
        self.redis = Redis(folder) if processes > 1 else None
        self._database, self._processes, self._broken = database, processes, broken
        self._settings = settings
        self.servers: list[Server] = []
        self.person = self.runner_token = ""

    async def start(self) -> None:
        if self.postgres is not None:
            await asyncio.to_thread(self.postgres.start)
        if self.redis is not None:
            self.redis.start()
        await asyncio.to_thread(self._provision)
        for number in range(self._processes):
            self.servers.append(Server(self._environment(), self.folder / f"server-{number}.log"))
        await self.all_up()

    async def all_up(self) -> None:
        """Everything runs and nothing is set to fail."""
        if self.redis is not None:
            self.redis.start()
        for server in self.servers:
            server.signal(signal.SIGCONT)
            server.start()
        await asyncio.gather(*(server.ready() for server in self.servers))

    async def stop(self) -> None:
        for server in self.servers:
            server.signal(signal.SIGCONT)
            await server.kill()
        if self.redis is not None:
            self.redis.stop()
        if self.postgres is not None:
            await asyncio.to_thread(self.postgres.stop)

    def manage(self, *arguments: str, check: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self._environment() | more,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        if check and done.returncode:
            raise ClusterError(f"manage.py {arguments[0]} failed: {done.stderr[-2000:]}")
        return done

    def _provision(self) -> None:
        self.manage("migrate", "--no-input")
        self.manage("user", "torture", KANDEV_USER_PASSWORD=os.urandom(12).hex())
        self.person = self.manage("token", "personal", "--user", "torture").stdout.strip()
        self.runner_token = self.manage("token", "runner", "--name", "torture").stdout.strip()

    def _environment(self) -> dict[str, str]:
        """Nothing that is set for another installation may reach this one."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("KANDEV_")}
        own: dict[str, Any] = {
            "DEBUG": "1",
            "PYTHONFAULTHANDLER": "1",
            "SECRET_KEY": "for-torture-only-" + "k" * 40,
            "DATABASE_URL": self._url(),
            "REDIS_URL": self.redis.url if self.redis is not None else "",
            "KANDEV_BREAK": self._broken,
        }
        return inherited | own | self._settings

    def _url(self) -> str:
        if self.postgres is not None:
            return self.postgres.url
        return f"sqlite:///{self.folder / 'kandev.sqlite3'}" if self._database == "sqlite" else self._database
