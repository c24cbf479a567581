"""The two MCP surfaces (contract 6): `/mcp/session` for a session's agent, `/mcp` for programs that act for a person.

The SDK's kernel (`serve_one`) judges versions, methods and parameters and shapes results. The HTTP framing around it is
ours, because of what a call that waits for hours needs: no state in the process (any process serves any call, a restart
loses nothing, no start-up hook is needed), first bytes at once, a small footprint for each waiter, and an end of the
wait as soon as the client is gone.
"""
