"""Reading HTML in tests: what a browser would run, and whether each control has a name."""

from html.parser import HTMLParser


class Markup(HTMLParser):
    """Elements in order: (name, attributes)."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._in_script = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script and data.strip():
            self.scripts.append(data)

    def all(self, name: str) -> list[dict[str, str]]:
        return [attributes for tag, attributes in self.elements if tag == name]

    def dangers(self) -> list[str]:
        """Inline scripts and styles, handlers, foreign addresses: what the Content-Security-Policy would refuse."""
        found = list(self.scripts)
        for tag, attributes in self.elements:
            found += [f"{tag} {name}" for name in attributes if name.startswith("on") or name in ("style", "srcdoc")]
            if tag in ("script", "link", "img", "iframe", "form", "use"):
                found += [value for name in ("src", "href", "action") if "//" in (value := attributes.get(name, ""))]
            if attributes.get("href", "").strip().lower().startswith(("javascript:", "data:")):
                found.append(attributes["href"])
        return found

    def nameless_controls(self) -> list[dict[str, str]]:
        labelled = {label.get("for") for label in self.all("label")} - {None}
        controls = [
            a for tag, a in self.elements if tag in ("input", "textarea", "select") and a.get("type") != "hidden"
        ]
        return [a for a in controls if a.get("id") not in labelled and "aria-labelledby" not in a]
