# Everything a newcomer needs:  make serve   make test
# The virtual environment is made once; it is brought up to date when pyproject.toml, setup.py or the native sources change.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILT_FROM := pyproject.toml $(wildcard setup.py kernels/native/* kernels/native/grammar/*)

.PHONY: serve test lint doctor pull clean help
.DEFAULT_GOAL := help

help:
	@echo 'make serve    install, fetch the model, serve on 127.0.0.1:8000   (MODEL=… serves another one)'
	@echo 'make test     install what the tests need and run them all       (ARGS=… goes to pytest)'
	@echo 'make lint     ruff, and mypy in its strict mode'
	@echo 'make doctor   what was found on this machine, what is missing'
	@echo 'make clean    remove the virtual environment and what was built'

serve: $(VENV)/.installed
	@trap : INT; $(BIN)/turnstile serve $(MODEL) || test $$? -eq 130    # Ctrl-C is how it is meant to end

test: $(VENV)/.installed-test
	@$(BIN)/turnstile pull
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/mypy

pull doctor: $(VENV)/.installed
	@$(BIN)/turnstile $@

$(VENV)/.installed: $(VENV)/.created $(BUILT_FROM)
	@echo 'Installing Turnstile into $(VENV): a few minutes the first time.'
	$(BIN)/python -m pip install --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@echo 'Installing what the tests need into $(VENV).'
	$(BIN)/python -m pip install --disable-pip-version-check -e '.[test]'
	@touch $@

$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "make: no '$(PYTHON)' here. Turnstile needs Python 3.11 or newer: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $(PYTHON) is $$($(PYTHON) -V 2>&1); Turnstile needs 3.11 or newer. Name one that is: make serve PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "make: $(PYTHON) can't make virtual environments: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info kernels/*.so
