"""Every address that the product serves: Django's patterns, walked down, and those beside Django."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from django.urls import URLPattern, URLResolver, get_resolver

from clarifications.api import wait
from kandev import probes

ROOT = Path(__file__).resolve().parents[2]


def django_routes() -> set[str]:
    """Each as `/api/v1/tasks/{}`, an id of any kind being `{}`."""
    return {f"/{plain(route)}" for route in _walk(get_resolver(), "")}


def _walk(resolver: URLResolver, prefix: str) -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern, route)
        elif isinstance(pattern, URLPattern):
            yield route


def plain(route: str) -> str:
    """A pattern, or an address of the table, with `{}` for what varies."""
    route = re.sub(r"<[^>]*>|\{[^}]*\}", "{}", route)
    route = re.sub(r"\(\?P\{\}(?:[^()]|\([^()]*\))*\)", "{}", route)
    return re.sub(r"[\^$]|\\Z", "", route)


def api_methods() -> set[str]:
    """`GET /api/v1/tasks/{}` for every method that a REST view has."""
    found = set()
    for route, view in _views(get_resolver(), ""):
        cls = getattr(view, "cls", None)
        if cls is not None and route.startswith("api/"):
            found |= {f"{name.upper()} /{plain(route)}" for name in cls.http_method_names if _served(cls, name)}
    return found


def _served(cls: type, name: str) -> bool:
    return name not in ("head", "options") and hasattr(cls, name)


def _views(resolver: URLResolver, prefix: str) -> Iterator[tuple[str, object]]:
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _views(pattern, route)
        else:
            yield route, pattern.callback


def beside_django() -> set[str]:
    """What `kandev/asgi.py` names itself, the probes, and `wait`."""
    tree = ast.parse((ROOT / "kandev" / "asgi.py").read_text(encoding="utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    named = {text for text in texts if re.fullmatch(r"/[a-z/]+", text)}
    return named | set(probes.PATHS) | {wait.PATH.pattern.strip("^$").replace("([^/]+)", "{}")}
