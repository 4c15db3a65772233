# The endpoint picker that is in every run. llm-d's own picker and sidecar have no release that could be built from a
# pinned module: tests/node takes them from LLMD_EPP and LLMD_SIDECAR.

.PHONY: llmd
llmd: engine $(TOOLS)/lwepp ## Build the endpoint picker of tests/llmd

$(TOOLS)/lwepp: tests/llmd/lwepp/go.mod
$(TOOLS)/lwepp: package = sigs.k8s.io/gateway-api-inference-extension/cmd/lwepp
$(TOOLS)/lwepp: cold = 1 min

$(TOOLS)/lwepp:
	$(build-program)
