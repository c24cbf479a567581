"""Memory and threads of waits that are held open in one server process."""

import json
import time

from clarifications.models import LeaseKind, WaiterLease
from kandev.bench import answers, seeding
from kandev.bench.report import Plan, Row
from kandev.bench.seeding import Asked, Scene
from kandev.bench.stage import Client, Server
from kandev.demo.processes import LocalError
from tasks import tokens
from tasks.models import TokenKind

SETTLE_S, PATIENCE_S = 1.0, 90.0
GOAL_KIB = 20


def rest(client: Client, server: Server, scene: Scene, plan: Plan) -> Row:
    def requests(count: int) -> list[str]:
        return [wait_request(scene, one) for one in seeding.asked(scene, count)]

    warm, measured = requests(plan.warm_waiters), requests(plan.waiters)
    return _row("one idle REST waiter", client, server, LeaseKind.REST, warm, measured)


def mcp(client: Client, server: Server, scene: Scene, plan: Plan) -> Row:
    def requests(count: int) -> list[str]:
        return [_tool_call(tokens.mint(TokenKind.SESSION, session=one)) for one, _ in seeding.sessions(scene, count)]

    warm, measured = requests(plan.warm_waiters), requests(max(2, plan.waiters // 4))
    return _row("one idle MCP waiter", client, server, LeaseKind.MCP, warm, measured)


def wait_request(scene: Scene, asked: Asked) -> str:
    head = f"GET /api/v1/clarification/{asked.pending_id}/wait HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    return f"{head}Authorization: Bearer {scene.token}\r\n\r\n"


def _tool_call(token: str) -> str:
    options = [{"label": label, "description": "what it means"} for label in ("Yes", "No")]
    call = {
        "name": "ask_user_question_kandev",
        "arguments": {"questions": [{"id": "q1", "title": "", "prompt": "Which?", "options": options}]},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    sent = answers.request("/mcp/session", token, body)
    return sent.replace("\r\n\r\n", "\r\nAccept: application/json, text/event-stream\r\n\r\n", 1)


def _row(name: str, client: Client, server: Server, kind: str, warm: list[str], measured: list[str]) -> Row:
    """The first ones load what is needed once; the memory of the others is told."""
    _hold(client, server, kind, warm)
    memory, threads = server.memory_kib(), server.threads()
    _hold(client, server, kind, measured)
    each = (server.memory_kib() - memory) / len(measured)
    more_threads = server.threads() - threads
    server.kill()
    WaiterLease.objects.all().delete()  # else the next server would detach them all, one by one
    figures = f"{each:.1f} KiB with {len(measured):,} of them, {more_threads} more threads"
    return Row(name, f"at most {GOAL_KIB} KiB, no thread", figures, each <= GOAL_KIB and more_threads <= 0)


def _hold(client: Client, server: Server, kind: str, requests: list[str]) -> None:
    before = WaiterLease.objects.filter(kind=kind).count()
    client("hold", port=server.port, requests=requests)
    deadline = time.monotonic() + PATIENCE_S
    while WaiterLease.objects.filter(kind=kind).count() < before + len(requests):
        if time.monotonic() > deadline or server.process.poll() is not None:
            raise LocalError("not every wait was taken")
        time.sleep(0.1)
    time.sleep(SETTLE_S)
