"""Turns, messages, the current-turn rule, prompt admission, queue, dispatch, runners, recovery."""
