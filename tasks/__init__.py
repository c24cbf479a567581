"""Workspaces, access, tokens, tasks, sessions, summaries, pending-action registry."""
