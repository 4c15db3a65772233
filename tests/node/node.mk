# The real node of the tests: kubelet, containerd, CNI, kube-proxy, CoreDNS and NetworkPolicy enforcement, each
# built from pinned Go modules like the control plane (tests/cluster/tools.mk), the image of its pods and a model.
# `make node` makes what is missing. Needs root and, from Debian: debootstrap iproute2 iptables runc.

NODE := .cache/node
NODE_KUBERNETES := $(addprefix $(TOOLS)/,kubelet kube-proxy)
CONTAINERD := $(addprefix $(TOOLS)/,containerd containerd-shim-runc-v2 ctr)
CNI := $(addprefix $(TOOLS)/,ptp loopback host-local)
NODE_PROGRAMS := $(NODE_KUBERNETES) $(CONTAINERD) $(CNI) \
  $(addprefix $(TOOLS)/,coredns kube-network-policies gpu-device-plugin)

.PHONY: node
node: tools engine llmd $(NODE_PROGRAMS) $(NODE)/layer.tar $(NODE)/model/.ready ## Make the real node of tests/node

# Each program: the go.mod that pins it, its package, and the time of a cold build on two cores.
$(NODE_KUBERNETES): tests/cluster/kubernetes/go.mod
$(CONTAINERD): tests/node/containerd/go.mod
$(CNI): tests/node/cni/go.mod
$(TOOLS)/coredns: tests/node/coredns/go.mod
$(TOOLS)/kube-network-policies: tests/node/networkpolicy/go.mod
$(TOOLS)/gpu-device-plugin: tests/node/deviceplugin/go.mod tests/node/deviceplugin/main.go

$(TOOLS)/kubelet: package = k8s.io/kubernetes/cmd/kubelet
$(TOOLS)/kube-proxy: package = k8s.io/kubernetes/cmd/kube-proxy
$(CONTAINERD): package = github.com/containerd/containerd/v2/cmd/$(@F)
$(addprefix $(TOOLS)/,ptp loopback): package = github.com/containernetworking/plugins/plugins/main/$(@F)
$(TOOLS)/host-local: package = github.com/containernetworking/plugins/plugins/ipam/host-local
$(TOOLS)/coredns: package = github.com/coredns/coredns
$(TOOLS)/kube-network-policies: package = sigs.k8s.io/kube-network-policies/cmd
$(TOOLS)/gpu-device-plugin: package = .

$(TOOLS)/kubelet: cold = 2 min
$(TOOLS)/kube-proxy: cold = 10 s
$(CONTAINERD): cold = 45 s
$(CNI): cold = 10 s
$(TOOLS)/coredns: cold = 2 min
$(TOOLS)/kube-network-policies: cold = 90 s
$(TOOLS)/gpu-device-plugin: cold = 20 s

$(NODE_KUBERNETES): stamp = $(KUBE_STAMP)

$(NODE_PROGRAMS):
	$(build-program)

# The one image of all pods, as a layer: Debian's Python, which the engine runs on, the libraries that the engine
# wants of its host, and tests/node/image. The engine itself (5 GB) is mounted: see node.py.
IMAGE_PACKAGES := python3,libgomp1,libnuma1
UNUSED := $(addprefix --exclude=./,dev/* var/cache/* var/lib/apt/lists/* usr/share/doc/* usr/share/man/* usr/share/locale/*)

$(NODE)/layer.tar: $(shell find tests/node/image -type f) tests/node/node.mk
	@echo "making the image of the node's pods (about 1 min) …"
	@rm -rf $(NODE)/rootfs && mkdir -p $(NODE)
	@debootstrap --variant=minbase --include=$(IMAGE_PACKAGES) bookworm $(NODE)/rootfs >$(NODE)/debootstrap.log 2>&1 || \
	  { tail -n 20 $(NODE)/debootstrap.log >&2; exit 1; }
	@cp -a tests/node/image/. $(NODE)/rootfs
	@tar --create --file=$@ --directory=$(NODE)/rootfs $(UNUSED) .
	@rm -rf $(NODE)/rootfs

$(NODE)/model/.ready: tests/engine/inside/model.py $(ENGINE)/.ready
	@echo "making a tiny model …"
	@$(ENGINE)/bin/python $< $(@D) && chmod -R a+rX $(@D) && touch $@
