"""Catalogues of texts without gettext's programs: what a source says is to be translated, and a .po compiled to .mo."""

import ast
import re
import struct
from pathlib import Path

from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parents[2]
APPS = ("tasks", "turns", "clarifications", "kandev")
CALLED = {"_", "gettext", "gettext_lazy", "ngettext"}
STRING = r'"(?:[^"\\]|\\.)*"'


def read(path: Path) -> dict[str, str]:
    """msgid to msgstr; a plural's forms are joined by NUL, as in a .mo."""
    found: dict[str, str] = {}
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        parts = re.findall(rf"^(msg\w+)(?:\[\d\])? ((?:{STRING}\s*)+)", block, re.MULTILINE)
        texts: dict[str, list[str]] = {"msgid": [], "msgstr": []}
        for name, raw in parts:
            texts[name.replace("_plural", "")].append("".join(map(ast.literal_eval, re.findall(STRING, raw))))
        if parts:
            found["\0".join(texts["msgid"])] = "\0".join(texts["msgstr"])
    return found


def compiled(path: Path) -> bytes:
    """The .mo of a .po: a header, two tables of length and offset, and the texts."""
    pairs = sorted((key.encode(), value.encode()) for key, value in read(path).items())
    start = 28 + 16 * len(pairs)
    tables, texts = [b"", b""], b""
    for side in (0, 1):
        for pair in pairs:
            tables[side] += struct.pack("<2I", len(pair[side]), start + len(texts))
            texts += pair[side] + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 0)
    return head + tables[0] + tables[1] + texts


def python_texts() -> set[str]:
    """Of templates and code, a plural's singular standing for both."""
    files = [path for app in APPS for path in (ROOT / app).rglob("*.py")]
    sources = [path.read_text(encoding="utf-8") for path in files]
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "templates").rglob("*.html")]
    return set().union(*map(_calls, sources), *map(_of_template, pages))


def _calls(source: str) -> set[str]:
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.args]
    named = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in CALLED]
    return {call.args[0].value for call in named if _is_text(call.args[0])}  # type: ignore[attr-defined]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _of_template(source: str) -> set[str]:
    """Django turns a template into calls; what stands between them is noise."""
    found = re.findall(rf"""(?:\b_|gettext)\(\s*u?({STRING}|'(?:[^'\\]|\\.)*')""", templatize(source))
    return {ast.literal_eval(text) for text in found}


def script_texts() -> set[str]:
    files = (ROOT / "kandev" / "static" / "kandev").glob("*.js")
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return {ast.literal_eval(text) for text in re.findall(rf"gettext\(\s*({STRING})", sources)}
