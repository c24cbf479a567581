"""`manage.py user NAME`: a person who may sign in."""

import getpass
import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import IntegrityError, transaction


class Command(BaseCommand):
    help = "Makes a person; the password comes from KANDEV_USER_PASSWORD, else from standard input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--update", action="store_true", help="set the password of an existing person")

    def handle(self, *args: Any, **options: Any) -> None:
        name = _clean(options["name"])
        exists = User.objects.filter(username=name).exists()
        if exists and not options["update"]:
            raise CommandError(f"there is a user {name} already; --update sets the password")
        if options["update"] and not exists:
            raise CommandError(f"there is no user {name}")
        password = _password()
        self._warn(password, User(username=name))
        (_update if exists else _create)(name, password)

    def _warn(self, password: str, user: User) -> None:
        """The operator decides; a weak password is told, never shown."""
        try:
            validate_password(password, user)
        except ValidationError as error:
            self.stderr.write("weak password: " + " ".join(error.messages))


def _clean(name: str) -> str:
    try:
        return str(User._meta.get_field("username").clean(name, None))  # noqa: SLF001
    except ValidationError as error:
        raise CommandError("the name is not valid: " + " ".join(error.messages)) from None


def _password() -> str:
    password = os.environ.get("KANDEV_USER_PASSWORD") or _typed()
    if not password:
        raise CommandError("the password is empty")
    return password


def _typed() -> str:
    return getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")


def _create(name: str, password: str) -> None:
    try:
        with transaction.atomic():
            User.objects.create_user(name, password=password)
    except IntegrityError:
        raise CommandError(f"there is a user {name} already") from None


def _update(name: str, password: str) -> None:
    user = User.objects.get(username=name)
    user.set_password(password)
    User.objects.filter(pk=user.pk).update(password=user.password)
