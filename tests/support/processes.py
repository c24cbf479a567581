"""Real processes of the product: started, killed, frozen and restarted on a database of their own."""

import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from tests.support import services
from tests.support.databases import Template, product_environment, run_python
from tests.support.keeper import free_port
from tests.support.waiting import until
from tests.support.web import LOCAL

HOST = "127.0.0.1"


class Process:
    """One process of a product with its log; a second life of it appends to the same log."""

    def __init__(self, argv: list[str], environment: dict[str, str], log: Path) -> None:
        self.argv, self.environment, self.log = argv, environment, log
        self._popen = self._launch()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative is the signal that ended it."""
        return self._popen.poll()

    def logs(self) -> str:
        return self.log.read_text(errors="replace")

    def kill9(self) -> None:
        self._popen.kill()
        self._popen.wait(10)

    def term(self, within: float = 20) -> int:
        """Asks it to stop and returns its exit code."""
        self._popen.terminate()
        return self._popen.wait(within)

    def interrupt(self, within: float = 20) -> int:
        """The same with Ctrl-C's signal."""
        self._popen.send_signal(signal.SIGINT)
        return self._popen.wait(within)

    def freeze(self) -> None:
        self._popen.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._popen.send_signal(signal.SIGCONT)

    def ended(self, within: float = 20) -> int:
        """Waits until it ended by itself (a failpoint, a failed recovery) and returns its exit code."""
        return self._popen.wait(within)

    def relaunch(self, **environment: str) -> None:
        """Kills it if it still runs and starts it again; its last failpoints are not set again."""
        self.kill9()
        self.environment.pop("KANDEV_FAILPOINTS", None)
        self.environment.update(environment)
        self._popen = self._launch()

    def _launch(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.argv,
                cwd=services.ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


class Server(Process):
    """A web server process; a restarted one keeps its port."""

    def __init__(self, environment: dict[str, str], log: Path, port: int) -> None:
        self.port, self.url = port, f"http://{HOST}:{port}"
        super().__init__(_serve(port), environment, log)

    def ready(self, within: float = 30) -> None:
        until(self._answers, within=within, every=0.1, what=f"{self.url}/readyz answers 200")

    def restart(self, *, ready: bool = True, **environment: str) -> None:
        self.relaunch(**environment)
        if ready:
            self.ready()

    def _answers(self) -> bool:
        if self.exit_code is not None:
            raise AssertionError(f"The server ended with {self.exit_code}:\n{self.logs()[-4000:]}")
        try:
            return httpx2.get(f"{self.url}/readyz", timeout=5, **LOCAL).status_code == 200
        except httpx2.TransportError:
            return False


@dataclass
class Product:
    """One database and any number of processes on it. `environment` holds for all of them."""

    template: Template
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    clients: list[httpx2.Client] = field(default_factory=list)
    database_url: str = ""

    def __post_init__(self) -> None:
        self.database_url = self.template.clone()

    @property
    def tokens(self) -> dict[str, str]:
        """By name: owner, answerer, viewer, stranger, runner-1, runner-2."""
        return self.template.tokens

    def start(self, *, ready: bool = True, **environment: str) -> Server:
        """One more server process; `start(KANDEV_FAILPOINTS="live.after_wake")`."""
        port = free_port()
        public = {"HOST": HOST, "PORT": str(port), "KANDEV_PUBLIC_URL": f"http://{HOST}:{port}"}
        server = Server(self._environment(**public, **environment), self._log(f"server-{port}"), port)
        self.processes.append(server)
        if ready:
            server.ready()
        return server

    def client(self, name: str, server: Server | None = None) -> httpx2.Client:
        """REST as that person or runner, on the first server if none is named: `client("owner").get("/boot")`."""
        at = server or next(process for process in self.processes if isinstance(process, Server))
        headers = {"Authorization": f"Bearer {self.tokens[name]}"}
        self.clients.append(httpx2.Client(base_url=f"{at.url}/api/v1", headers=headers, timeout=60, **LOCAL))
        return self.clients[-1]

    def spawn(self, *arguments: str, **environment: str) -> Process:
        """A long-running `manage.py` command, such as a runner."""
        argv = [sys.executable, "manage.py", *arguments]
        process = Process(argv, self._environment(**environment), self._log(f"{arguments[0]}-{len(self.processes)}"))
        self.processes.append(process)
        return process

    def manage(self, *arguments: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        """A `manage.py` command that ends by itself."""
        return run_python("manage.py", *arguments, environment=self._environment(**environment), check=check)

    def logs(self) -> str:
        return "\n".join(f"--- {process.log.name}\n{process.logs()}" for process in self.processes)

    def close(self) -> None:
        for client in self.clients:
            client.close()
        for process in self.processes:
            process.kill9()
        print(self.logs()[-8000:])  # shown by pytest under a failed test only
        self.template.drop(self.database_url)

    def _environment(self, **extra: str) -> dict[str, str]:
        return product_environment(self.database_url, **{**self.environment, **extra})

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


def _serve(port: int) -> list[str]:
    return [sys.executable, "-m", "daphne", "-b", HOST, "-p", str(port), "kandev.asgi:application"]
