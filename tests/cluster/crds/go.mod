// Pins the projects whose custom resources the charts create. Their CRDs are read from the module cache:
//   github.com/prometheus-operator/prometheus-operator  example/prometheus-operator-crd/*.yaml
//   github.com/kedacore/keda/v2                         config/crd/bases/*.yaml
//   sigs.k8s.io/gateway-api-inference-extension         config/crd/bases/*.yaml
//   sigs.k8s.io/gateway-api                             config/crd/standard/*.yaml
//   istio.io/api                                        kubernetes/customresourcedefinitions.gen.yaml
// `go mod download -json` prints the folder of each.
module vllm-phases/tests/cluster/crds

go 1.26.0

require (
	github.com/kedacore/keda/v2 v2.21.0
	github.com/prometheus-operator/prometheus-operator v0.85.0
	istio.io/api v1.32.0
	sigs.k8s.io/gateway-api v1.6.3
	sigs.k8s.io/gateway-api-inference-extension v1.6.0
)

require (
	github.com/alecthomas/kingpin/v2 v2.4.0 // indirect
	github.com/alecthomas/units v0.0.0-20240927000941-0f3dac36c52b // indirect
	github.com/prometheus/common v0.71.0 // indirect
	github.com/xhit/go-str2duration/v2 v2.2.0 // indirect
)
