# The schemas of custom resources that the tool carries, made anew from the CRDs of the pinned modules.

CRD_SCHEMAS ?= tools/vllm_phases/objects/data
CRD_PINS := tests/cluster/crds

# A module pinned there: the folder of its files.
crd-files = $$(cd $(CRD_PINS) && go list -m -f '{{.Dir}}' $(1))
PROMETHEUS_OPERATOR = $(call crd-files,github.com/prometheus-operator/prometheus-operator)
KEDA = $(call crd-files,github.com/kedacore/keda/v2)
GATEWAY_API = $(call crd-files,sigs.k8s.io/gateway-api)
ISTIO = $(call crd-files,istio.io/api)
INFERENCE = $(call crd-files,sigs.k8s.io/gateway-api-inference-extension)

.PHONY: crds
crds: .venv/.ready
	cd $(CRD_PINS) && go mod download
	.venv/bin/python -m vllm_phases.objects.crds $(CRD_SCHEMAS) \
	  $(PROMETHEUS_OPERATOR)/example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml \
	  $(PROMETHEUS_OPERATOR)/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml \
	  $(KEDA)/config/crd/bases/keda.sh_scaledobjects.yaml \
	  $(KEDA)/config/crd/bases/keda.sh_triggerauthentications.yaml \
	  $(GATEWAY_API)/config/crd/standard/gateway.networking.k8s.io_backendtlspolicies.yaml \
	  $(GATEWAY_API)/config/crd/standard/gateway.networking.k8s.io_gateways.yaml \
	  $(GATEWAY_API)/config/crd/standard/gateway.networking.k8s.io_grpcroutes.yaml \
	  $(GATEWAY_API)/config/crd/standard/gateway.networking.k8s.io_httproutes.yaml \
	  $(INFERENCE)/config/crd/bases/inference.networking.k8s.io_inferencepools.yaml \
	  $(CRD_PINS)/leaderworkersets.yaml
	.venv/bin/python -m vllm_phases.objects.crds $(CRD_SCHEMAS) --only DestinationRule --only EnvoyFilter \
	  $(ISTIO)/kubernetes/customresourcedefinitions.gen.yaml
