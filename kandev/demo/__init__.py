"""The demonstration: a scripted ACP agent that needs no model, and what `manage.py demo` and `runall` start."""
