# What `make bench` compares `vllm-phases lint` with.

$(TOOLS)/kubeconform: tests/bench/kubeconform/go.mod
$(TOOLS)/kubeconform: package = github.com/yannh/kubeconform/cmd/kubeconform
$(TOOLS)/kubeconform: cold = 20 s

$(TOOLS)/kubeconform:
	$(build-program)

# checkov wants old releases of much that the tool uses, so it has a virtual environment of its own.
CHECKOV := .cache/checkov

$(CHECKOV)/.ready: requirements/checkov.txt | $(VENV)/.ready
	@echo 'make bench: installing checkov'
	@$(PYTHON) -m venv --clear --without-pip $(@D)
	@$(BIN)/uv pip sync --quiet --require-hashes --python $(@D)/bin/python $<
	@touch $@

.PHONY: checkov-lock
checkov-lock: $(VENV)/.ready ## Pin checkov's environment anew, with hashes
	@echo checkov | $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command 'make checkov-lock' - \
	  -o requirements/checkov.txt
