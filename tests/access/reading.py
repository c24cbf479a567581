"""The table's rows as data, and as docs/access.md."""

from tests.access import administration, table
from tests.access.cast import CALLERS

HEAD = """# Who hears what

Made from `tests/access/table.py` by the test that holds it against the running product; `ACCESS_PAGE=write` before
that test writes this page anew. Foreign and unknown things are the same 404, byte for byte. A thing that the caller
sees and may not use is 403; no or dead credentials are 401, on a page the way to the sign-in (302).

Callers: people with a role in the workspace (`staff` is Django's staff without one), `foreign` is a stranger's token,
`agent` the token of the session, `other agent` that of another session of the same task, `read scope` a token of the
owner that may only read, `auth off` nobody with `KANDEV_AUTH=off`. {open} is a question that nobody waits for, {live}
one with a waiter, {past} one of an earlier turn.
"""
PARTS = {
    "REST": table.REST,
    "Pages (cookies alone)": table.PAGES,
    "Admin": table.ADMIN,
    "Beside Django": table.BESIDE,
}


def rows(text: str) -> dict[str, list[str]]:
    """Row to its cells, one for each of CALLERS."""
    found = {}
    for line in text.strip().splitlines():
        words = line.split()
        found[" ".join(words[: -len(CALLERS)])] = words[-len(CALLERS) :]
    return found


def models() -> dict[str, dict[str, list[str]]]:
    """Model to page to what staff and a superuser hear."""
    lines = (line.split() for line in table.MODELS.strip().splitlines())
    return {
        name: {page: cell.split(",") for page, cell in zip(administration.PAGES, cells, strict=True)}
        for name, *cells in lines
    }


def page() -> str:
    """docs/access.md."""
    parts = [HEAD, *(f"## {title}\n\n{_grid(rows(text))}" for title, text in PARTS.items())]
    shown = {name: [" / ".join(cell) for cell in cells.values()] for name, cells in models().items()}
    admin = _lines(["model (staff / superuser, others 302)", *administration.PAGES], shown)
    return "\n".join([*parts, f"## Admin, each model\n\n{admin}"])


def _grid(found: dict[str, list[str]]) -> str:
    return _lines(["", *CALLERS], {f"`{name}`": cells for name, cells in found.items()})


def _lines(head: list[str], found: dict[str, list[str]]) -> str:
    lines = [head, ["---"] * len(head), *([name, *cells] for name, cells in found.items())]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
