"""What Daphne refuses before the application is asked (a raw byte in an address, a bad header) is JSON for programs."""

import json
from typing import Any

from daphne.http_protocol import WebRequest

from tasks.errors import of_status

PROGRAMS = (b"/api/", b"/mcp")


def install() -> None:
    """Teaches Daphne's requests the error of contract 3; once a process, before it listens."""
    if getattr(WebRequest, "kandev_plain", False):
        return
    WebRequest.kandev_plain = True
    page, received = WebRequest.basic_error, WebRequest.requestReceived

    def error(self: Any, status: int, status_text: bytes, body: str) -> None:
        if not self.uri.startswith(PROGRAMS):
            page(self, status, status_text, body)
            return
        refusal = of_status(status)
        raw = json.dumps(refusal.body()).encode()
        headers = [(b"Content-Type", b"application/json"), (b"Content-Length", str(len(raw)).encode())]
        self.handle_reply({"type": "http.response.start", "status": refusal.status, "headers": headers})
        self.handle_reply({"type": "http.response.body", "body": raw})

    def without_forms(self: Any, *line: bytes) -> None:
        """Twisted would read a form as well, for nobody, and refuse a bad one with an empty body."""
        self._parsePOSTFormSubmission = False
        received(self, *line)

    WebRequest.basic_error, WebRequest.requestReceived = error, without_forms
