# make check: the main job. make test: every test. Each does all its own set-up, in .venv and .cache.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10 | sort

include tests/cluster/tools.mk tests/engine/engine.mk tests/llmd/llmd.mk tests/node/node.mk tests/objects/crds.mk tests/bench/bench.mk

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: check
check: $(VENV)/.ready ## Check every values/phase*.yaml: schema, rendering, objects, flags
	$(BIN)/vllm-phases check

.PHONY: test
test: packages lint tools engine parsers llmd node ## Run every test: rendering, a real control plane, engine and node
	$(BIN)/pytest $(PYTEST_ARGS)

# What the engine and the node of the tests need of the system.
PACKAGES := debootstrap iproute2 iptables libnuma1 openssl runc

.PHONY: packages
packages: ## Install the Debian packages that the tests use (root)
	@missing=$$(for package in $(PACKAGES); do dpkg -s $$package >/dev/null 2>&1 || echo $$package; done); \
	  [ -z "$$missing" ] || { echo "installing" $$missing; apt-get update -qq && apt-get install -y -qq $$missing; }

.PHONY: quick
quick: $(VENV)/.ready ## Run the tests that need no cluster, engine or node
	$(BIN)/pytest -m 'not cluster and not engine and not node' $(PYTEST_ARGS)

.PHONY: lint
lint: $(VENV)/.ready ## Lint the Python, the YAML and the shell
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/yamllint --strict --config-file lintconf.yaml schemas values charts/*/Chart.yaml charts/*/ci ct.yaml chart_schema.yaml
	$(BIN)/shellcheck .ci/run tests/node/machine.sh charts/vllm-llmd/files/drain.sh

.PHONY: docs
docs: $(VENV)/.ready ## Generate values.yaml, values.schema.json, docs/values.md, docs/rules.md, findings.txt and the engine facts
	$(BIN)/vllm-phases schema generate
	$(BIN)/vllm-phases catalogue chart
	$(BIN)/vllm-phases rules --write docs/rules.md
	$(BIN)/python -m tests.lint.findings

.PHONY: bench
bench: $(VENV)/.ready tools $(TOOLS)/kubeconform $(CHECKOV)/.ready ## Compare `check` with `helm template`, `lint` with kubeconform and checkov
	$(BIN)/python tests/bench/bench_check.py
	$(BIN)/python tests/bench/bench_lint.py
	$(BIN)/python -m tests.bench.bench_others

.PHONY: mutate
mutate: $(VENV)/.ready ## Change each rule of the linter and list what no test notices
	$(BIN)/python -m tests.mutation $(MUTATE_ARGS)

.PHONY: lock
lock: $(VENV)/.ready ## Pin the development environment anew, with hashes
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.10 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --extra dev pyproject.toml -o requirements/dev.txt
