from django.apps import AppConfig


class ClarificationsConfig(AppConfig):
    name = "clarifications"
    default_auto_field = "django.db.models.BigAutoField"
