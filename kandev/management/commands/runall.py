"""`python manage.py runall` (`make run`): a server and a runner with the demo agent on this machine, until Ctrl-C."""

import datetime as dt
import os
import socket
import time
from contextlib import suppress
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.utils import timezone

from kandev import localkeys
from kandev.demo.processes import EVERYWHERE, Local, LocalError, StopRequestedError, address, stop_on_signals
from kandev.demo.rest import Person
from tasks import tokens
from tasks.models import TokenKind

NAME = "demo"
PASSWORD, RUNNER_TOKEN = localkeys.VAR / "demo-password", localkeys.VAR / "runner-token"


class Command(BaseCommand):
    help = "Migrates, seeds a demo workspace and runs a server and a runner until it is stopped (HOST, PORT)."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = os.environ.get("HOST") or "127.0.0.1", port_from(os.environ.get("PORT") or "8000")
        stop_on_signals()
        try:
            self._run(host, port)
        except StopRequestedError:
            self._say("Stopped.")
        except LocalError as error:
            raise CommandError(str(error)) from None

    def _run(self, host: str, port: int) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        first = seed_person()
        personal, runner = personal_token(), runner_token()
        connections.close_all()
        with Local(environment(host, port)) as local:
            url = local.start_server(host, port)
            local.start_runner(url, runner, localkeys.VAR / "runner")
            seed_work(url, personal)
            tokens.revoke(personal)
            connections.close_all()
            self._greet(url, first)
            while True:
                local.check()
                time.sleep(0.5)

    def _greet(self, url: str, first: bool) -> None:
        password = PASSWORD.read_text() if first else f"the one shown at the first start (it is in {PASSWORD})"
        self._say(f"\nKandev runs at {url}/\nSign in as {NAME}, password: {password}\nCtrl-C stops everything.\n")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def port_from(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 65535):
        raise CommandError(f"PORT must be a number from 1 to 65535, not {text!r}")
    return int(text)


def environment(host: str, port: int) -> dict[str, str]:
    """What the children are told, where the person did not decide otherwise."""
    hosts = ["127.0.0.1", "localhost", "[::1]", host, *(own_names() if host in EVERYWHERE else [])]
    return {"KANDEV_PUBLIC_URL": address(host, port), "ALLOWED_HOSTS": ",".join(hosts)} | dict(os.environ)


def own_names() -> list[str]:
    """This machine's name and addresses, as it knows them itself: who listens everywhere is called by these."""
    name = socket.gethostname()
    with suppress(OSError):
        found = {str(info[4][0]) for info in socket.getaddrinfo(name, None)}
        return [name, *sorted(f"[{one}]" if ":" in one else one for one in found)]
    return [name]


def seed_person() -> bool:
    """Makes the demo person once, with a random password. True when it was made now."""
    if User.objects.filter(username=NAME).exists():
        return False
    User.objects.create_user(NAME, password=localkeys.kept(PASSWORD, 12))
    return True


def personal_token() -> str:
    """For the seeding alone, which takes seconds."""
    expiry = timezone.now() + dt.timedelta(minutes=10)
    return tokens.mint(TokenKind.PERSONAL, name="seeding", expires_at=expiry, user=User.objects.get(username=NAME))


def runner_token() -> str:
    """The token of the local runner. It is kept: a runner's id belongs to the token it first came with."""
    if RUNNER_TOKEN.exists() and tokens.find(RUNNER_TOKEN.read_text()):
        return RUNNER_TOKEN.read_text()
    RUNNER_TOKEN.unlink(missing_ok=True)
    localkeys.keep(RUNNER_TOKEN, tokens.mint(TokenKind.RUNNER, name="local runner"))
    return RUNNER_TOKEN.read_text()


def seed_work(url: str, token: str) -> None:
    """A workspace with a task whose agent asks at once, unless the demo person has a workspace already."""
    person = Person(url, token)
    try:
        if not person.get("/workspaces")["results"]:
            workspace = person.post("/workspaces", {"name": "Demo"})
            person.start_task(workspace["id"], "Plan a release", "Plan a release and ask me what you need to know.")
    finally:
        person.close()
