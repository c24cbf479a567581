"""How tests speak HTTP to servers of this machine."""

import re
import ssl
from typing import Any

import httpx2

from tests.support.seed import password_of

# A context that knows nobody: https is not spoken here. Each client would load the system's certificates otherwise,
# 50 ms of processor time a request.
NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
LOCAL: dict[str, Any] = {"trust_env": False, "verify": NOBODY}


def signed_in(url: str, name: str) -> httpx2.Client:
    """A browser after the sign-in form; the caller closes it."""
    client = httpx2.Client(base_url=url, timeout=60, **LOCAL)
    form = client.get("/accounts/login/").text
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    assert found
    given = {"username": name, "password": password_of(name), "csrfmiddlewaretoken": found[1]}
    assert client.post("/accounts/login/", data=given, headers={"Referer": url}).status_code == 302
    client.headers["X-CSRFToken"] = client.cookies["csrftoken"]
    return client
