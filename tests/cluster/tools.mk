# The test control plane: programs built from pinned Go modules, and the files that it reads from other modules.
# `make tools` makes what is missing; nothing is built again until its go.mod changes.

TOOLS := .cache/bin
CRDS := .cache/crds
STAGES := .cache/kwok

KUBERNETES := $(addprefix $(TOOLS)/,etcd kubectl kube-apiserver kube-controller-manager kube-scheduler)
PROGRAMS := $(KUBERNETES) $(addprefix $(TOOLS)/,kwok helm helm3)

.PHONY: tools
tools: $(PROGRAMS) $(CRDS)/.ready $(STAGES)/.ready ## Build the test control plane (about 12 minutes, once)

# Each program: the go.mod that pins it, its package, and the time of a cold build on two cores.
$(KUBERNETES): tests/cluster/kubernetes/go.mod
$(TOOLS)/kwok: tests/cluster/kwok/go.mod
$(TOOLS)/helm: tests/cluster/helm4/go.mod
$(TOOLS)/helm3: tests/cluster/helm3/go.mod

$(TOOLS)/etcd: package = go.etcd.io/etcd/server/v3
$(TOOLS)/kubectl: package = k8s.io/kubernetes/cmd/kubectl
$(TOOLS)/kube-apiserver: package = k8s.io/kubernetes/cmd/kube-apiserver
$(TOOLS)/kube-controller-manager: package = k8s.io/kubernetes/cmd/kube-controller-manager
$(TOOLS)/kube-scheduler: package = k8s.io/kubernetes/cmd/kube-scheduler
$(TOOLS)/kwok: package = sigs.k8s.io/kwok/cmd/kwok
$(TOOLS)/helm: package = helm.sh/helm/v4/cmd/helm
$(TOOLS)/helm3: package = helm.sh/helm/v3/cmd/helm

$(TOOLS)/etcd: cold = 10 s
$(TOOLS)/kubectl: cold = 1 min
$(TOOLS)/kube-apiserver: cold = 3 min
$(TOOLS)/kube-controller-manager: cold = 2 min
$(TOOLS)/kube-scheduler: cold = 30 s
$(TOOLS)/kwok: cold = 1 min
$(TOOLS)/helm: cold = 2 min
$(TOOLS)/helm3: cold = 2 min

# A module pinned in the go.mod of the current folder: its version, its minor version, the folder of its files.
module-version = $$(go list -m -f '{{.Version}}' $(1))
module-minor = $$(go list -m -f '{{.Version}}' $(1) | cut -d. -f2)
module-files = $$(go list -m -f '{{.Dir}}' $(1))

# Without its stamp an API server calls itself v0.0.0, and every chart's kubeVersion refuses it.
KUBE := -X k8s.io/component-base/version
KUBE_STAMP = $(KUBE).gitVersion=$(call module-version,k8s.io/kubernetes) \
  $(KUBE).gitMajor=1 $(KUBE).gitMinor=$(call module-minor,k8s.io/kubernetes)
$(KUBERNETES): stamp = $(KUBE_STAMP)

$(TOOLS)/helm: stamp = -X helm.sh/helm/v4/internal/version.version=$(call module-version,helm.sh/helm/v4)

# Helm 3 also takes from its stamp the Kubernetes version that `helm lint` and `helm template` assume.
HELM3 := -X helm.sh/helm/v3
$(TOOLS)/helm3: stamp = $(HELM3)/internal/version.version=$(call module-version,helm.sh/helm/v3) \
  $(foreach package,pkg/chartutil pkg/lint/rules,$(HELM3)/$(package).k8sVersionMajor=1 \
    $(HELM3)/$(package).k8sVersionMinor=$(call module-minor,k8s.io/client-go))

define build-program
@command -v go >/dev/null || { echo "make: building $(@F) needs Go 1.26 or newer on the PATH" >&2; exit 2; }
@echo "building $(@F) (about $(cold) cold) …"
@mkdir -p $(@D)
@cd $(<D) && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $(stamp)" -o $(abspath $@) $(package)
endef

$(PROGRAMS):
	$(build-program)

# The custom resources that the charts create.
$(CRDS)/.ready: tests/cluster/crds/go.mod tests/cluster/crds/leaderworkersets.yaml tests/cluster/tools.mk
	@echo "collecting custom resource definitions …"
	@mkdir -p $(@D)
	@cd $(<D) && go mod download && install -m 644 -t $(abspath $(@D)) \
	  $(call module-files,github.com/prometheus-operator/prometheus-operator)/example/prometheus-operator-crd/*_podmonitors.yaml \
	  $(call module-files,github.com/prometheus-operator/prometheus-operator)/example/prometheus-operator-crd/*_servicemonitors.yaml \
	  $(call module-files,github.com/kedacore/keda/v2)/config/crd/bases/keda.sh_scaledobjects.yaml \
	  $(call module-files,sigs.k8s.io/gateway-api)/config/crd/standard/gateway.networking.k8s.io_gateways.yaml \
	  $(call module-files,sigs.k8s.io/gateway-api)/config/crd/standard/gateway.networking.k8s.io_httproutes.yaml \
	  $(call module-files,sigs.k8s.io/gateway-api-inference-extension)/config/crd/bases/inference.networking.k8s.io_inferencepools.yaml \
	  leaderworkersets.yaml
	@cd $(<D) && awk -v RS='---\n' '/\n  name: (destinationrules|envoyfilters)\.networking\.istio\.io\n/ {print "---\n" $$0}' \
	  $(call module-files,istio.io/api)/kubernetes/customresourcedefinitions.gen.yaml >$(abspath $(@D))/istio.yaml
	@touch $@

# How fake nodes, pods and volumes come up and go: kwok's own stages.
$(STAGES)/.ready: tests/cluster/kwok/go.mod tests/cluster/tools.mk
	@echo "collecting kwok's stages …"
	@mkdir -p $(@D)
	@cd $(<D) && go mod download sigs.k8s.io/kwok && cd $(call module-files,sigs.k8s.io/kwok)/kustomize/stage && \
	  install -m 644 -t $(abspath $(@D)) node/fast/node-*.yaml node/heartbeat-with-lease/node-*.yaml \
    pod/fast/pod-*.yaml volume/fast/pv*.yaml
	@touch $@
