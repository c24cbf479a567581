"""REST of turns and messages."""
