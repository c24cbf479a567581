"""Answers per second over HTTP: detached rejections, 16 connections, each bundle answered once."""

from collections.abc import Sequence
from typing import Any

from kandev.bench import seeding
from kandev.bench.report import Plan, Row, median, spread
from kandev.bench.seeding import Asked, Scene
from kandev.bench.stage import Client, Server
from kandev.demo.processes import LocalError

CONNECTIONS = 16
BODY = '{"rejected":true}'


def request(path: str, token: str = "", body: str = BODY) -> str:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"{head}{authorization}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"


def against_bare(client: Client, product: Server, bare: Server, scene: Scene, plan: Plan) -> Row:
    ours, floor = Load(client, scene, plan), Load(client, scene, plan, bare=True)
    pairs = [(ours.run([product]), floor.run([bare])) for _ in range(plan.rounds + 1)][1:]  # the first one warms up
    ratios = [mine["rate"] / theirs["rate"] for mine, theirs in pairs]
    ratio, rate = median(ratios), median(mine["rate"] for mine, _ in pairs)
    figures = (
        f"{ratio:.2f} x ({spread(ratios)}): {rate:.0f}/s, p50 {median(mine['p50'] for mine, _ in pairs) * 1e3:.0f} ms, "
        f"p99 {median(mine['p99'] for mine, _ in pairs) * 1e3:.0f} ms; bare {median(b['rate'] for _, b in pairs):.0f}/s"
    )
    return Row("answers per second, one process", "at least 0.5 x bare", figures, ratio >= 0.5)


def two_against_one(client: Client, servers: Sequence[Server], scene: Scene, plan: Plan) -> Row:
    load = Load(client, scene, plan)
    pairs = [(load.run(servers), load.run(servers[:1])) for _ in range(plan.rounds + 1)][1:]
    ratios = [both["rate"] / one["rate"] for both, one in pairs]
    ratio = median(ratios)
    figures = (
        f"{ratio:.2f} x ({spread(ratios)}): {median(both['rate'] for both, _ in pairs):.0f}/s against "
        f"{median(one['rate'] for _, one in pairs):.0f}/s"
    )
    return Row("two processes against one", "at least 1.3 x", figures, ratio >= 1.3)


class Load:
    """Rounds of load; each takes fresh bundles, the bare view takes any row again and again."""

    def __init__(self, client: Client, scene: Scene, plan: Plan, bare: bool = False) -> None:
        self._client, self._scene, self._plan, self._bare = client, scene, plan, bare
        self._size = int(plan.answers_per_second * plan.seconds)
        self._rows: list[Asked] = seeding.asked(scene, 50) if bare else []

    def run(self, servers: Sequence[Server]) -> dict[str, Any]:
        found = self._client(
            "load",
            ports=[server.port for server in servers],
            requests=self._requests(),
            connections=CONNECTIONS,
            seconds=self._plan.seconds,
        )
        if set(found["codes"]) != {"200"}:
            raise LocalError(f"not every answer was taken: {found['codes']}")
        return {**found, "rate": found["done"] / found["elapsed"]}

    def _requests(self) -> list[str]:
        if self._bare:
            rows = [self._rows[number % len(self._rows)] for number in range(self._size)]
            return [request(f"/answer/{row.session.pk}/{row.rows[0].pk}") for row in rows]
        fresh = seeding.asked(self._scene, self._size)
        return [request(f"/api/v1/clarification/{one.pending_id}/respond", self._scene.token) for one in fresh]
