"""Kandev: agents ask, people answer, exactly one answer wins and reaches the agent once."""

__version__ = "0.1.0"
