"""The two ASGI applications, to be mounted at `/mcp/session` and `/mcp`. They need no start-up."""

from clarifications.mcp import admitting, asking_tool, person_tools, tools
from clarifications.mcp.endpoint import Endpoint

session_app = Endpoint(
    tools.server(
        "kandev-session",
        "Ask the person who is responsible for this task when a decision is not yours to make.",
        [asking_tool.ENTRY],
    ),
    admitting.agent,
)
external_app = Endpoint(
    tools.server(
        "kandev",
        "Find the questions that agents ask and answer them for a person. Answer only what you were told to.",
        [person_tools.LIST, person_tools.ANSWER, person_tools.TASKS],
    ),
    admitting.person,
)
