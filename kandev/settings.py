"""Settings from the environment (names, defaults and meanings: docs/operations.md)."""

from pathlib import Path
from typing import Any

import environ
import structlog
from django.core.exceptions import ImproperlyConfigured

from kandev import values
from kandev.database import database_from_url
from kandev.logs import LOGGING as LOGGING

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="insecure-key-for-debug-only-" + "x" * 24 if DEBUG else "")
if not SECRET_KEY:
    raise ImproperlyConfigured("SECRET_KEY is not set: give a long random value, or DEBUG=1 on your own machine.")
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])

DEFAULT_EXCEPTION_REPORTER_FILTER = "kandev.reporting.Filter"

KANDEV_AUTH = values.one_of(env, "KANDEV_AUTH", "required", "off")
KANDEV_AUTH_OFF_ANYWHERE = env.bool("KANDEV_AUTH_OFF_ANYWHERE", default=False)
KANDEV_PUBLIC_URL = env.str("KANDEV_PUBLIC_URL", default="http://127.0.0.1:8000").rstrip("/")
KANDEV_CLAIM_TIMEOUT_S = values.seconds(env, "KANDEV_CLAIM_TIMEOUT_S", 5)
KANDEV_DELIVERY_TIMEOUT_S = values.seconds(env, "KANDEV_DELIVERY_TIMEOUT_S", 30)
KANDEV_PAUSE_GRACE_S = values.seconds(env, "KANDEV_PAUSE_GRACE_S", 20)
KANDEV_RUNNER_LEASE_S = values.seconds(env, "KANDEV_RUNNER_LEASE_S", 30)
KANDEV_WATCHDOG_S = values.seconds(env, "KANDEV_WATCHDOG_S", 15)
KANDEV_WAIT_TIMEOUT_S = values.seconds(env, "KANDEV_WAIT_TIMEOUT_S", 7200)
KANDEV_KEEPALIVE_S = values.seconds(env, "KANDEV_KEEPALIVE_S", 20)
KANDEV_INSTANCE_LEASE_S = values.seconds(env, "KANDEV_INSTANCE_LEASE_S", 15)
KANDEV_RATE_LOGIN = values.rate(env, "KANDEV_RATE_LOGIN", "10/m")
KANDEV_RATE_TOKEN = values.rate(env, "KANDEV_RATE_TOKEN", "60/m")
KANDEV_RATE_ANSWER = values.rate(env, "KANDEV_RATE_ANSWER", "120/m")
KANDEV_FAILPOINTS = env.str("KANDEV_FAILPOINTS", default="")
KANDEV_DB_POOL = env.int("KANDEV_DB_POOL", default=12)

DATABASE_URL = env.str("DATABASE_URL", default="sqlite:///var/kandev.sqlite3")
DATABASES: dict[str, Any] = {
    "default": database_from_url(
        DATABASE_URL, BASE_DIR, KANDEV_DB_POOL, KANDEV_CLAIM_TIMEOUT_S, max(10, KANDEV_INSTANCE_LEASE_S)
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.str("REDIS_URL", default="")
CHANNEL_LAYERS: dict[str, Any] = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL]},
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 10_000}},
}

INSTALLED_APPS = [
    "daphne",
    "kandev",
    "tasks",
    "turns",
    "clarifications",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
]
MIDDLEWARE = [
    "kandev.middleware.JsonErrorsMiddleware",
    "kandev.middleware.ChunkedBodyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "kandev.middleware.NoNulMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "kandev.middleware.ContentSecurityPolicyMiddleware",
]
ROOT_URLCONF = "kandev.urls"
ASGI_APPLICATION = "kandev.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.debug",
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/accounts/login/"
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = KANDEV_PUBLIC_URL.startswith("https://")
CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "kandev" / "locale"]
USE_I18N = True
TIME_ZONE = "UTC"
USE_TZ = True
APPEND_SLASH = False

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "var" / "static"
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # WhiteNoise warns about a folder that is not there
STATICFILES_DIRS = [BASE_DIR / "kandev" / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "tasks.authentication.BearerAuthentication",
        "tasks.authentication.CookieAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["tasks.strictjson.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "tasks.errors.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Kandev",
    "VERSION": "1",
    "DESCRIPTION": "Agents ask, people answer, exactly one answer wins.",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "clarifications.api.described.add_wait",
    ],
    "ENUM_NAME_OVERRIDES": {"TaskState": "tasks.models.TaskState", "SessionState": "tasks.models.SessionState"},
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}
structlog.configure(logger_factory=structlog.stdlib.LoggerFactory(), wrapper_class=structlog.stdlib.BoundLogger)
