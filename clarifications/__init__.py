"""Ask, claim, hand over, expire, late answer; their REST, MCP, pages and admin."""
