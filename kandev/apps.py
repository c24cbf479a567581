from django.apps import AppConfig


class KandevConfig(AppConfig):
    name = "kandev"

    def ready(self) -> None:
        from kandev import checks, wiring  # noqa: F401 - importing them registers them

        wiring.connect()
