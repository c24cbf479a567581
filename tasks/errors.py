"""One error root: every refusal has a sentence, a code and a status; views build no error bodies (contract 3)."""

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

logger = logging.getLogger(__name__)


class KandevError(Exception):
    """A refusal that a caller is told. `fields` names what was wrong on a 400; `retryable` goes with 500 and 503."""

    status = 400
    code = "invalid"
    message = "the request is not valid"
    retryable: bool | None = None

    def __init__(
        self, message: str | None = None, *, code: str | None = None, fields: dict[str, Any] | None = None
    ) -> None:
        self.message = message or type(self).message
        self.code = code or type(self).code
        self.fields = fields
        super().__init__(self.message)

    def body(self) -> dict[str, Any]:
        """The wire shape `{"error", "code"[, "fields"][, "retryable"]}`."""
        body: dict[str, Any] = {"error": self.message, "code": self.code}
        if self.status == 400:
            body["fields"] = self.fields or {"non_field_errors": [self.message]}
        if self.status in (500, 503):
            body["retryable"] = bool(self.retryable)
        return body

    def headers(self) -> dict[str, str]:
        """The headers that go with the status."""
        return {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(self.status, {})


class Invalid(KandevError):
    """400: `fields` maps each field to a list of sentences."""


class UnknownHost(Invalid):
    code, message = "unknown_host", "this host name is not in ALLOWED_HOSTS"


class Unauthorized(KandevError):
    status, code, message = 401, "unauthorized", "valid credentials are needed"


class Forbidden(KandevError):
    status, code, message = 403, "forbidden", "you may see this, but not do that"


class NotFound(KandevError):
    """Unknown and not visible look the same, so that an id tells nothing."""

    status, code, message = 404, "not_found", "not found"


class Conflict(KandevError):
    status, code, message = 409, "conflict", "the request conflicts with the current state"


class TooLarge(KandevError):
    status, code, message = 413, "too_large", "the body is larger than 1 MiB"


class TooMany(KandevError):
    status, code, message = 429, "rate_limited", "too many attempts, wait a moment"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__()
        self.retry_after_s = retry_after_s

    def headers(self) -> dict[str, str]:
        return {"Retry-After": str(self.retry_after_s)}


class Unavailable(KandevError):
    status, code, message, retryable = 503, "temporarily_unavailable", "busy just now, try again", True


class ServerFault(KandevError):
    status, code, message, retryable = 500, "internal_error", "something failed on the server", False


class ProjectionFailed(ServerFault):
    """Pending actions could not be read: an error, never an empty or guessed owner (promise I6)."""

    code, message, retryable = "projection_failed", "the pending actions could not be read", True

    @classmethod
    @contextlib.contextmanager
    def guard(cls) -> Iterator[None]:
        """Around a read of projections. The kinds are other layers' code, so whatever fails in it counts."""
        try:
            yield
        except KandevError:
            raise
        except Exception as error:
            logger.exception("pending actions could not be read")
            raise cls from error


class SessionEnded(Conflict):
    code, message = "session_unavailable", "the session has ended"


def invalid(field: str, sentence: str) -> Invalid:
    return Invalid(f"{field}: {sentence}", fields={field: [sentence]})


def is_lock_timeout(error: OperationalError) -> bool:
    """True when a bounded wait for a lock or a connection ended: nothing was written, a retry may win."""
    text = str(error).lower()
    return any(part in text for part in ("locked", "lock timeout", "canceling statement", "pool", "deadlock", "busy"))


def of_status(status: int) -> KandevError:
    """The refusal that goes with a status which somebody else has chosen, such as Django or the server before it."""
    if status == 400:
        return Invalid("the request is malformed")
    kinds: list[type[KandevError]] = [Unauthorized, Forbidden, NotFound, TooLarge, Unavailable]
    found = next((kind() for kind in kinds if kind.status == status), None)
    if found is None:
        found = ServerFault() if status >= 500 else KandevError("the request was refused", code="refused")
        found.status = status
    return found


def translate(error: Exception) -> KandevError:
    """Any exception of a request as the error that its caller is told; what is not expected is logged with a trace."""
    match error:
        case KandevError():
            return error
        case exceptions.ValidationError() | exceptions.ParseError():
            return _invalid(error.detail)
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return Unauthorized()
        case SuspiciousOperation():
            return TooLarge() if isinstance(error, RequestDataTooBig) else Invalid("the request is malformed")
        case Http404() | exceptions.NotFound():
            return NotFound()
        case PermissionDenied() | exceptions.PermissionDenied():
            return Forbidden(str(getattr(error, "detail", "")) or None)
        case OperationalError() if is_lock_timeout(error):
            return Unavailable()
        case exceptions.APIException():
            return _other(error)
    logger.error("request failed", exc_info=error)
    return ServerFault()


def _invalid(detail: Any) -> Invalid:
    if isinstance(detail, str):
        return Invalid(str(detail))
    fields = detail if isinstance(detail, dict) else {"non_field_errors": detail}
    return Invalid("the request is not valid: " + ", ".join(map(str, fields)), fields=dict(fields))


def _other(error: exceptions.APIException) -> KandevError:
    made = KandevError(str(error.detail), code=error.default_code)
    made.status = error.status_code
    return made


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's hook: the one place where an exception of a REST view becomes a response."""
    refusal = translate(error)
    return Response(refusal.body(), status=refusal.status, headers=refusal.headers())
