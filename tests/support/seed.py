"""Fills a template: migrations, four people whose roles never change, two runner tokens.

Runs as a process of its own (`python -m tests.support.seed`) with the product's environment, and only through the
commands that an operator has. The last line of its output maps each name to a token.
"""

import io
import json
import os

PEOPLE = ("owner", "answerer", "viewer", "stranger")
RUNNERS = ("runner-1", "runner-2")


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kandev.settings")
    import django

    django.setup()
    _call("migrate", verbosity=0)
    tokens = {name: _person(name) for name in PEOPLE}
    tokens |= {name: _call("token", "runner", name=name) for name in RUNNERS}
    print(json.dumps(tokens))


def password_of(name: str) -> str:
    return f"{name}-Zq7-pass-phrase"


def _person(name: str) -> str:
    os.environ["KANDEV_USER_PASSWORD"] = password_of(name)
    _call("user", name)
    return _call("token", "personal", user=name)


def _call(command: str, *arguments: str, **options: object) -> str:
    from django.core.management import call_command

    output = io.StringIO()
    words = [word for key, value in options.items() if key != "verbosity" for word in (f"--{key}", str(value))]
    call_command(command, *arguments, *words, stdout=output, verbosity=int(str(options.get("verbosity", 1))))
    return output.getvalue().strip()


if __name__ == "__main__":
    main()
