"""The ground that the other tests stand on."""

import socket
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection

from tests.support import services
from tests.support.keeper import free_port
from tests.support.waiting import at_once, until


@pytest.mark.django_db(transaction=True)
def test_the_database_under_test_is_the_real_one(database: str) -> None:
    with connection.cursor() as cursor:
        if database == "postgres":
            assert connection.vendor == "postgresql"
        else:
            cursor.execute("PRAGMA journal_mode")
            assert cursor.fetchone() == ("wal",)
            assert str(connection.settings_dict["NAME"]).endswith("test.sqlite3")


@pytest.mark.once
def test_postgres_is_there_in_both_runs(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as link:
        assert link.info.server_version >= 140000


@pytest.mark.once
def test_redis_answers(redis_url: str) -> None:
    parts = urlsplit(redis_url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), 2) as link:
        link.sendall(b"PING\r\n")
        assert link.recv(16) == b"+PONG\r\n"


@pytest.mark.once
def test_an_embedded_service_ends_with_the_run_that_started_it() -> None:
    argv = [sys.executable, "-m", "tests.support.keeper", "redis"]
    with subprocess.Popen(argv, cwd=services.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout
        port = urlsplit(keeper.stdout.readline().strip()).port
        keeper.communicate(timeout=20)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port or 0), 1)


@pytest.mark.once
def test_until_returns_what_it_waited_for_and_says_what_it_missed() -> None:
    arrived = threading.Event()
    threading.Timer(0.05, arrived.set).start()
    assert until(arrived.is_set)
    with pytest.raises(AssertionError, match="the moon did not hold"):
        until(lambda: None, within=0.05, what="the moon")


@pytest.mark.once
def test_a_refused_connection_is_not_yet() -> None:
    port = free_port()
    with pytest.raises(AssertionError, match="did not hold"):
        until(lambda: socket.create_connection(("127.0.0.1", port), 1), within=0.05)


@pytest.mark.once
def test_at_once_returns_results_and_errors_in_the_order_of_the_calls() -> None:
    first, second = at_once(lambda: 1, lambda: 1 // 0)
    assert first == 1
    assert isinstance(second, ZeroDivisionError)
