"""Cursor pages `{"next", "previous", "results"}` (contract 3) over the whole sort key.

DRF's own cursor holds the first sort field and an offset among its equals; here it holds the key of the row at the
edge, so rows that come and go never shift a page, and any number of equal times is fine (H7, B17 of the fault list).
A cursor is signed for its caller, its address and its order: altered, truncated and foreign ones are a 400 that names
`cursor`. Filters may change under it: it is a place in the order and no more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.core import signing
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from tasks.errors import invalid

M = TypeVar("M", bound=Model)

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
MAX_CURSOR = 500


@dataclass(frozen=True)
class Cursor:
    """The edge of a page: everything after (or before) the row with this key."""

    backward: bool
    key: tuple[str, ...]


def page(
    request: Request, rows: QuerySet[M], ordering: Sequence[str] = ("created_at", "id")
) -> tuple[list[M], str | None, str | None]:
    """(rows of this page, next link, previous link); `ordering` is ascending and unique as a whole.

    `?limit=` is 1 to 200 (more counts as 200), 50 by default.
    """
    signer = _signer(request, rows, ordering)
    limit, cursor = read_limit(request), _read_cursor(request, signer, rows, ordering)
    found, more = _fetch(rows, ordering, cursor, limit)
    forward = cursor is None or not cursor.backward
    after = more if forward else True
    before = (cursor is not None) if forward else more
    following = Cursor(False, _key(found[-1], ordering)) if found and after else None
    preceding = Cursor(True, _key(found[0], ordering)) if found and before else None
    return found, _link(request, signer, following), _link(request, signer, preceding)


def response(results: list[Any], following: str | None, preceding: str | None) -> Response:
    return Response({"next": following, "previous": preceding, "results": results})


def read_limit(request: Request) -> int:
    text = request.query_params.get("limit")
    if text is None:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdigit()) or not text.strip("0"):
        raise invalid("limit", "must be a whole number from 1")
    return MAX_LIMIT if len(text) > 9 else min(int(text), MAX_LIMIT)


def _fetch(rows: QuerySet[M], ordering: Sequence[str], cursor: Cursor | None, limit: int) -> tuple[list[M], bool]:
    backward = cursor is not None and cursor.backward
    if cursor is not None:
        rows = rows.filter(_beyond(ordering, cursor))
    ordered = rows.order_by(*(f"-{name}" if backward else name for name in ordering))
    found = list(ordered[: limit + 1])
    more = len(found) > limit
    found = found[:limit]
    return (found[::-1] if backward else found), more


def _beyond(ordering: Sequence[str], cursor: Cursor) -> Q:
    """(a, b, …) beyond the key, spelled for any database; the first term lets an index find the place."""
    side = "lt" if cursor.backward else "gt"
    condition, equal = Q(), Q()
    for name, value in zip(ordering, cursor.key, strict=True):
        condition |= equal & Q(**{f"{name}__{side}": value})
        equal &= Q(**{name: value})
    return Q(**{f"{ordering[0]}__{side}e": cursor.key[0]}) & condition


def _key(row: Model, ordering: Sequence[str]) -> tuple[str, ...]:
    return tuple(_spell(getattr(row, name)) for name in ordering)


def _spell(value: Any) -> str:
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _signer(request: Request, rows: QuerySet[Any], ordering: Sequence[str]) -> signing.Signer:
    return signing.Signer(salt="cursor:" + repr((request.user.pk, request.path, rows.model.__name__, *ordering)))


def _link(request: Request, signer: signing.Signer, cursor: Cursor | None) -> str | None:
    if cursor is None:
        return None
    text = signer.sign_object([cursor.backward, *cursor.key])
    return str(replace_query_param(request.build_absolute_uri(), "cursor", text))


def _read_cursor(
    request: Request, signer: signing.Signer, rows: QuerySet[Any], ordering: Sequence[str]
) -> Cursor | None:
    text = request.query_params.get("cursor")
    if text is None:
        return None
    if len(text) > MAX_CURSOR:
        raise invalid("cursor", "is not a cursor of this list")
    try:
        backward, *key = signer.unsign_object(text)
        fields = [rows.model._meta.get_field(name) for name in ordering]  # noqa: SLF001
        values = tuple(field.to_python(value) for field, value in zip(fields, key, strict=True))
    except (signing.BadSignature, ValidationError, ValueError, TypeError):
        raise invalid("cursor", "is not a cursor of this list") from None
    return Cursor(bool(backward), values)
