"""Connects the layers: who fills which hook. Imported once, when the applications are ready."""


def connect() -> None:
    """Registers the hooks of the higher layers with the lower ones."""
