"""How tests speak HTTP to servers of this machine."""

import ssl
from typing import Any

# A context that knows nobody: https is not spoken here. Each client would load the system's certificates otherwise,
# 50 ms of processor time a request.
NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
LOCAL: dict[str, Any] = {"trust_env": False, "verify": NOBODY}
