# make check: the main job. make test: every test. Each does all its own set-up, in .venv and .cache.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10 | sort

include tests/cluster/tools.mk tests/engine/engine.mk tests/objects/crds.mk

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: check
check: $(VENV)/.ready ## Check every values/phase*.yaml: schema, rendering, objects, flags
	$(BIN)/vllm-phases check

.PHONY: test
test: lint tools engine ## Run every test: rendering, a real control plane, a real engine
	$(BIN)/pytest $(PYTEST_ARGS)

.PHONY: quick
quick: $(VENV)/.ready ## Run the tests that need no cluster and no engine
	$(BIN)/pytest -m 'not cluster and not engine' $(PYTEST_ARGS)

.PHONY: lint
lint: $(VENV)/.ready ## Lint the Python, the YAML and the shell
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/yamllint --strict --config-file lintconf.yaml schemas values charts/*/Chart.yaml charts/*/ci ct.yaml chart_schema.yaml
	$(BIN)/shellcheck .ci/run

.PHONY: docs
docs: $(VENV)/.ready ## Generate values.yaml, values.schema.json, docs/values.md, docs/rules.md and the engine facts
	$(BIN)/vllm-phases schema generate
	$(BIN)/vllm-phases catalogue chart
	$(BIN)/vllm-phases rules --write docs/rules.md

.PHONY: bench
bench: $(VENV)/.ready tools ## Compare `check` with one `helm template` a file; time of `lint` by number of objects
	$(BIN)/python tests/bench/bench_check.py
	$(BIN)/python tests/bench/bench_lint.py

.PHONY: lock
lock: $(VENV)/.ready ## Pin the development environment anew, with hashes
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --extra dev pyproject.toml -o requirements/dev.txt
