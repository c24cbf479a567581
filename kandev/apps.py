from django.apps import AppConfig


class KandevConfig(AppConfig):
    name = "kandev"

    def ready(self) -> None:
        from kandev import wiring

        wiring.connect()
