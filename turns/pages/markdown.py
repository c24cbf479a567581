"""Agents write Markdown. It becomes HTML without scripts, styles, forms or anything fetched from elsewhere."""

from functools import lru_cache

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
LONGEST = 200_000

_parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])


def render(text: str) -> SafeString:
    """Safe HTML of an agent's text; a pathologically long one is cut, the rest stays in the API."""
    return _render(text[:LONGEST])


@lru_cache(maxsize=512)
def _render(text: str) -> SafeString:
    html = nh3.clean(
        _parser.render(text),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    return mark_safe(html)  # noqa: S308 - nh3 has cleaned it
