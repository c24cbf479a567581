"""The few REST calls that the demonstration needs, made as any other program would make them."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx2

from kandev.demo.processes import LocalError

Json = dict[str, Any]
T = TypeVar("T")


class Person:
    """One person's token on one server."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx2.Client(base_url=f"{url}/api/v1", headers=headers, timeout=60, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def get(self, path: str) -> Json:
        return self._body(self._http.get(path))

    def post(self, path: str, body: Json, patience_s: float = 0) -> Json:
        """Posts `body`. For `patience_s` seconds a 503 that says it is retryable is tried again."""
        deadline = time.monotonic() + patience_s
        while True:
            answer = self._http.post(path, json=body)
            if answer.status_code != 503 or time.monotonic() >= deadline:
                return self._body(answer)
            time.sleep(0.3)

    @staticmethod
    def _body(answer: httpx2.Response) -> Json:
        if answer.status_code >= 400:
            raise LocalError(
                f"{answer.request.method} {answer.request.url.path} was answered {answer.status_code}: {answer.text}"
            )
        return dict(answer.json())

    def start_task(self, workspace: str, title: str, prompt: str) -> Json:
        """A task whose primary session is the demo agent's; waits for the runner to be there."""
        body = {"workspace": workspace, "title": title, "agent": "demo", "prompt": prompt}
        return self.post("/tasks", body, patience_s=30)

    def questions(self) -> list[Json]:
        return list(self.get("/clarifications")["bundles"])

    def bundle(self, pending_id: str) -> Json:
        return self.get(f"/clarification/{pending_id}")


def until(look: Callable[[], T], what: str, within_s: float, check: Callable[[], None]) -> T:
    """Looks until the result is truthy. Raises LocalError when it stays away, or whatever `check` raises."""
    deadline = time.monotonic() + within_s
    while not (found := look()):
        check()
        if time.monotonic() >= deadline:
            raise LocalError(f"{what} did not happen within {within_s:g} s")
        time.sleep(0.1)
    return found
