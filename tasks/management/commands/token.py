"""`manage.py token personal|runner|session|revoke`: prints the new token and nothing else; nothing for revoke (H8)."""

import datetime as dt
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from tasks import tokens
from tasks.access import read_id
from tasks.models import Session, TokenKind, TokenScope


class Command(BaseCommand):
    help = "Mints or revokes a token. Its text is shown once; only a hash is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True)
        personal = kinds.add_parser("personal", help="acts for a person")
        personal.add_argument("--user", required=True)
        personal.add_argument("--scope", choices=TokenScope.values, default=TokenScope.ALL.value)
        runner = kinds.add_parser("runner", help="connects a runner")
        session = kinds.add_parser("session", help="the agent of one session, in whichever turn is current")
        session.add_argument("--session", required=True)
        for one in (personal, runner, session):
            one.add_argument("--name", default="", required=one is runner)
            one.add_argument("--days", type=int, help="expires after so many days")
        kinds.add_parser("revoke", help="ends a token").add_argument("token")

    def handle(self, *args: Any, **options: Any) -> None:
        match options["kind"]:
            case "personal":
                self._mint(TokenKind.PERSONAL, options, user=_user(options["user"]), scope=options["scope"])
            case "runner":
                self._mint(TokenKind.RUNNER, options)
            case "session":
                self._mint(TokenKind.SESSION, options, session=_session(options["session"]))
            case _:
                _revoke(options["token"])

    def _mint(self, kind: TokenKind, options: dict[str, Any], **fields: Any) -> None:
        self.stdout.write(tokens.mint(kind, name=_name(options["name"]), expires_at=_expiry(options["days"]), **fields))


def _user(name: str) -> User:
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise CommandError(f"there is no active user {name}")
    return user


def _session(text: str) -> Session:
    pk = read_id(text)
    session = Session.objects.filter(pk=pk).first() if pk else None
    if session is None:
        raise CommandError(f"there is no session {text}")
    return session


def _name(name: str) -> str:
    if len(name) > 200 or not name.isprintable():
        raise CommandError("the name must be at most 200 printable characters")
    return name


def _expiry(days: int | None) -> dt.datetime | None:
    if days is None:
        return None
    if not 1 <= days <= 36500:
        raise CommandError("--days must be 1 to 36500")
    return timezone.now() + dt.timedelta(days=days)


def _revoke(text: str) -> None:
    """The text is not repeated: it may have been mistyped by one character and stand in a log."""
    if not tokens.revoke(text):
        raise CommandError("no live token has this text")
