// Package crds only imports the smallest package of each pinned module, so that `go mod tidy` keeps the pins.
package crds

import (
	_ "github.com/kedacore/keda/v2/version"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
	_ "istio.io/api/label"
	_ "sigs.k8s.io/gateway-api-inference-extension/version"
	_ "sigs.k8s.io/gateway-api/pkg/consts"
)
