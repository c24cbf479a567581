# `make run` starts everything on this machine, `make test` proves it. Both make .venv first.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
LOCK := $(BIN)/pip-compile --quiet --strip-extras --allow-unsafe --generate-hashes --no-header --no-emit-options \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links
# More workers than cores: most tests wait for a process of the product. `make test WORKERS=0` runs one after another.
WORKERS ?= 3
SUITE := -n $(WORKERS) --dist worksteal --durations 25
# What fails among others runs once more by itself, and the output shows both (tests/failed_plugin.py).
whole = $(BIN)/python -m pytest --database $(1) $(SUITE) --failed-to var/failed-$(1)
alone = { test -s var/failed-$(1) && $(BIN)/python -m pytest --database $(1) @var/failed-$(1); }
CODE := kandev clarifications turns tasks tests manage.py

.PHONY: run test check format requirements chromium conformance

run: $(VENV)/run.stamp
	exec $(BIN)/python manage.py runall

test: check chromium conformance
	$(call whole,sqlite) || $(call alone,sqlite)
	$(call whole,postgres) || $(call alone,postgres)

# These two are only there so that the settings load; nothing is served or stored.
check: export SECRET_KEY = check-only
check: export DATABASE_URL = sqlite://:memory:
check: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports
	$(BIN)/python -W error manage.py check
	$(BIN)/python -W error manage.py makemigrations --check --dry-run

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

requirements: $(VENV)/dev.stamp
	$(LOCK) --upgrade --output-file requirements.txt requirements.in
	$(LOCK) --upgrade --output-file requirements-dev.txt requirements-dev.in

chromium: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.support.chromium

conformance: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.support.conformance

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and was not found." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: requirements.txt | $(BIN)/python
	$(PIP) install --require-hashes -r requirements.txt
	@touch $@

$(VENV)/dev.stamp: requirements-dev.txt | $(BIN)/python
	$(PIP) install --require-hashes -r requirements-dev.txt
	@echo "$(CURDIR)" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/kandev.pth"
	@touch $@ $(VENV)/run.stamp
