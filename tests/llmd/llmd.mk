# The endpoint picker and the simulator that are in every run. llm-d's own picker and sidecar have no release that could
# be built from a pinned module: tests/node takes them from LLMD_EPP and LLMD_SIDECAR.

LLMD := $(addprefix $(TOOLS)/,lwepp llm-d-inference-sim)

.PHONY: llmd
llmd: engine $(LLMD) ## Build the endpoint picker and the simulator of tests/llmd

$(TOOLS)/lwepp: tests/llmd/lwepp/go.mod
$(TOOLS)/lwepp: package = sigs.k8s.io/gateway-api-inference-extension/cmd/lwepp
$(TOOLS)/lwepp: cold = 1 min

$(TOOLS)/llm-d-inference-sim: tests/llmd/simulator/go.mod
$(TOOLS)/llm-d-inference-sim: package = github.com/llm-d/llm-d-inference-sim/cmd/llm-d-inference-sim
$(TOOLS)/llm-d-inference-sim: cold = 1 min

$(LLMD):
	$(build-program)
