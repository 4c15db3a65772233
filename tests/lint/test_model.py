"""What documents deploy: engines as vLLM would see them, and who finds whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from vllm_phases import sources
from vllm_phases.model import Document, Engine, Release, access, relations

ROOT = Path(__file__).parents[2]


def release(*objects: dict[str, Any] | str, version: str | None = None) -> Release:
    text = "\n---\n".join(found if isinstance(found, str) else yaml.safe_dump(found) for found in objects)
    read = list(sources.read_text(text, "a.yaml"))
    assert all(isinstance(found, Document) for found in read), read
    return Release(tuple(found for found in read if isinstance(found, Document)), version)


def deployment(
    called: str = "demo",
    /,
    *,
    labels: dict[str, str] | None = None,
    pod: dict[str, Any] | None = None,
    **container: Any,
) -> dict[str, Any]:
    engine = {"name": "vllm", "image": "vllm/vllm-openai:v0.33.0", "args": ["m"], **container}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": called, "namespace": "ns"},
        "spec": {
            "template": {
                "metadata": {"labels": labels or {"app": called}},
                "spec": {"containers": [engine], **(pod or {})},
            }
        },
    }


def engine(**container: Any) -> Engine:
    (found,) = release(deployment(**container)).engines
    return found


def service(name: str, **selector: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"selector": selector, "ports": [{"port": 8000}]},
    }


def script(text: str) -> Release:
    return Release((Document("a.sh", "command", text, text),))


class TestCommandLines:
    @pytest.mark.parametrize(
        ("container", "words"),
        [
            ({"command": ["sh", "-c", "exec vllm serve m --port 80"]}, ["m", "--port", "80"]),
            ({"command": ["bash", "-lc"], "args": ["vllm serve m; echo done"]}, ["m"]),
            ({"command": ["sh", "-c", 'vllm serve "$@"', "--"], "args": ["m", "--x=a b"]}, ["m", "--x=a b"]),
            ({"command": ["tini", "--", "bash", "-c", "bash -c 'vllm serve m'"], "args": []}, ["m"]),
            ({"command": ["/entry.sh"], "args": ["vllm", "serve", "m"]}, ["m"]),
            ({"command": ["bash", "-c", "bash <<'E'\nvllm serve m\nE\n"], "args": []}, ["m"]),
            ({"command": ["python", "-m", "vllm.entrypoints.cli.main", "serve", "m"], "args": []}, ["m"]),
            (
                {"args": ["$(M)", "--port=$(P)"], "env": [{"name": "M", "value": "a/b"}]},
                ["a/b", "--port=$(P)"],
            ),
            ({"args": ["$$(M)"], "env": [{"name": "M", "value": "a/b"}]}, ["$(M)"]),
            (
                {
                    "command": ["sh", "-c", "vllm serve $M $X"],
                    "args": [],
                    "env": [{"name": "M", "value": "a"}],
                },
                ["a", "$X"],
            ),
        ],
    )
    def test_of_containers(self, container: dict[str, Any], words: list[str]) -> None:
        assert [word.text for word in engine(**container).words] == words

    @pytest.mark.parametrize(
        "container",
        [
            {"command": ["hf", "download", "m"]},
            {"command": ["vllm", "bench", "serve"]},
            {"name": "x", "image": "example.net/other:1"},
            {"command": ["sh", "-c", "echo vllm"], "name": "x"},
        ],
    )
    def test_that_start_no_engine(self, container: dict[str, Any]) -> None:
        assert release(deployment(**container)).engines == ()

    def test_of_scripts(self) -> None:
        first, second = script(
            "export VLLM_LOGGING_LEVEL=DEBUG\nCUDA_VISIBLE_DEVICES=0 nohup vllm serve a --port 8100 &\n"
            "docker run --rm --gpus 2 -e HF_TOKEN -e A=1 -p 80:8000 -v /m:/models:ro vllm/vllm-openai:v0.30.0 b -tp 2\n"
        ).engines
        assert (first.model, first.port, first.variable("CUDA_VISIBLE_DEVICES")) == ("a", 8100, "0")
        assert first.variable("VLLM_LOGGING_LEVEL") == "DEBUG"
        assert first.gpu.kind == "unknown"
        assert (second.model, second.number("tensor-parallel-size"), second.gpu.count) == ("b", 2, 2)
        assert second.version is not None
        assert second.version.text == "0.30.0"
        assert second.variables["HF_TOKEN"].source == "host"
        (port,), (mount,) = second.container.ports, second.container.mounts
        assert (port.number, port.host_port, mount.volume, mount.path, mount.read_only) == (
            8000,
            80,
            "/m",
            "/models",
            True,
        )

    def test_of_compose(self) -> None:
        found = release(
            """
services:
  engine:
    image: vllm/vllm-openai:v0.30.0
    command: --model m --port ${PORT:-8100} --max-model-len $LEN
    environment: {A: 1, B: null}
    ports: ["127.0.0.1:80:8100/tcp"]
    volumes: [./m:/m:ro, {type: bind, source: /x, target: /y, read_only: true}]
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]}}}
"""
        )
        (found_engine,) = found.engines
        assert (found_engine.model, found_engine.port, found_engine.number("max-model-len")) == (
            "m",
            8100,
            None,
        )
        assert (found_engine.variable("A"), found_engine.variables["B"].source) == ("1", "host")
        assert (found_engine.gpu.kind, found_engine.gpu.count) == ("whole", 2)
        assert [mount.path for mount in found_engine.container.mounts] == ["/m", "/y"]
        assert found_engine.container.ports[0].host_port == 80


class TestArguments:
    def test_are_read_by_the_parser_of_the_release(self) -> None:
        found = engine(
            args=["m", "--tensor-par=2", "-pp", "3", "--max_model_len", "4k", "--no-enable-prefix-caching"]
        )
        assert (found.number("tensor-parallel-size"), found.number("pipeline-parallel-size")) == (2, 3)
        assert (found.number("max-model-len"), found.truth("enable-prefix-caching")) == (4000, False)
        assert found.gpus_needed == 6

    def test_the_last_one_counts(self) -> None:
        assert engine(args=["m", "--port=1", "--port", "2"]).port == 2

    def test_defaults_are_those_of_the_release(self) -> None:
        assert (engine().port, engine().number("tensor-parallel-size"), engine().truth("enforce-eager")) == (
            8000,
            1,
            False,
        )
        assert engine().text("gpu-memory-utilization") == "0.92"
        assert engine(image="vllm/vllm-openai:v0.19.0").text("gpu-memory-utilization") == "0.9"

    def test_what_is_not_known_is_none(self) -> None:
        found = engine(command=["sh", "-c", 'vllm serve "$M" --port $P $MORE'], args=[])
        assert (found.model, found.port, found.number("tensor-parallel-size")) == (None, None, None)
        assert found.arguments.open

    def test_json_and_dotted_options_merge(self) -> None:
        found = engine(args=["m", '--hf-overrides={"a": 1}', "--hf-overrides.b.c", "2"])
        assert found.arguments.object("hf-overrides") == {"a": 1, "b": {"c": 2}}


class TestKvTransfer:
    def test_of_one_connector(self) -> None:
        kv = engine(
            args=["m", '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_both"}']
        ).kv
        assert kv is not None
        assert (kv.connector, kv.role, kv.children) == ("NixlConnector", "kv_both", ())

    def test_of_several(self) -> None:
        config = (
            '{"kv_connector":"MultiConnector","kv_role":"kv_both","kv_connector_extra_config":{"connectors":'
            '[{"kv_connector":"NixlConnector"},{"kv_connector":"OffloadingConnector"}]}}'
        )
        kv = engine(args=["m", "--kv-transfer-config", config]).kv
        assert kv is not None
        assert [found.connector for found in kv.all()] == [
            "MultiConnector",
            "NixlConnector",
            "OffloadingConnector",
        ]
        assert kv.find("NixlConnector") is kv.children[0]

    @pytest.mark.parametrize("value", ["[]", "{", '"x"', "$(KV)"])
    def test_of_nothing_readable(self, value: str) -> None:
        kv = engine(args=["m", f"--kv-transfer-config={value}"]).kv
        assert kv is not None
        assert (kv.connector, dict(kv.config)) == ("", {})

    def test_with_a_variable_inside(self) -> None:
        kv = engine(
            args=["m", '--kv-transfer-config={"kv_connector":"NixlConnector","kv_ip":"$(POD_IP)"}']
        ).kv
        assert kv is not None
        assert kv.connector == "NixlConnector"


class TestRoles:
    @pytest.mark.parametrize(
        ("name", "labels", "kv_role", "role"),
        [
            ("a", {}, "kv_producer", "prefill"),
            ("a", {}, "kv_consumer", "decode"),
            ("a", {"llm-d.ai/role": "decode"}, "kv_both", "decode"),
            ("a-prefill", {}, "kv_both", "prefill"),
            ("a", {}, "kv_both", "both"),
            ("a-decode", {}, "", "decode"),
            ("decoder", {}, "", ""),
            ("a", {}, "", ""),
        ],
    )
    def test_come_from_the_connector_then_labels_then_names(
        self, name: str, labels: dict[str, str], kv_role: str, role: str
    ) -> None:
        args = ["m", f'--kv-transfer-config={{"kv_connector":"NixlConnector","kv_role":"{kv_role}"}}']
        (found,) = release(deployment(name, labels=labels, args=args if kv_role else ["m"])).engines
        assert found.role == role


class TestGpus:
    @pytest.mark.parametrize(
        ("limits", "kind", "resource", "count"),
        [
            ({"nvidia.com/gpu": "2"}, "whole", "nvidia.com/gpu", 2),
            ({"amd.com/gpu": 1}, "whole", "amd.com/gpu", 1),
            ({"nvidia.com/mig-1g.10gb": "1"}, "slice", "nvidia.com/mig-1g.10gb", 1),
            ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "40000"}, "hami", "nvidia.com/gpu", 1),
            ({"nvidia.com/gpumem": "40000"}, "hami", "nvidia.com/gpu", 1),
            ({"cpu": "1"}, "none", "", 0),
            ({"nvidia.com/gpu": "{{ gpus }}"}, "whole", "nvidia.com/gpu", None),
        ],
    )
    def test_of_limits(self, limits: dict[str, Any], kind: str, resource: str, count: int | None) -> None:
        found = engine(resources={"limits": limits}).gpu
        assert (found.kind, found.resource, found.count) == (kind, resource, count)

    def test_of_claims(self) -> None:
        found = engine(resources={"claims": [{"name": "gpu"}]}).gpu
        assert (found.kind, found.count, found.claims[0].text("name")) == ("claim", None, "gpu")

    def test_shares(self) -> None:
        found = engine(resources={"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 50}}).gpu
        assert {name: node.number() for name, node in found.shares.items()} == {"gpucores": 50}


class TestContainers:
    def test_variables_and_where_they_come_from(self) -> None:
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c", "namespace": "ns"},
            "data": {"A": "1", "k": "2"},
        }
        (found,) = release(
            config,
            deployment(
                envFrom=[{"configMapRef": {"name": "c"}, "prefix": "P_"}],
                env=[
                    {"name": "B", "value": "$(P_A)-$(X)"},
                    {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
                    {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    {"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "t"}}},
                    {"name": "F", "value": "at $(D)"},
                ],
            ),
        ).engines
        values = {name: found.variable(name) for name in ("P_A", "B", "C", "D", "E", "F")}
        assert values == {"P_A": "1", "B": "1-$(X)", "C": "2", "D": None, "E": None, "F": None}
        assert found.variables["D"].source == "field status.podIP"
        assert found.variables["E"].source == "secret s t"
        assert found.container.complete
        assert not engine(envFrom=[{"secretRef": {"name": "s"}}]).container.complete

    def test_probes_have_kubernetes_defaults(self) -> None:
        found = engine(
            ports=[{"name": "http", "containerPort": 8000}],
            startupProbe={"httpGet": {"path": "/health", "port": "http"}, "failureThreshold": 60},
        ).container
        probe = found.probe("startup")
        assert probe is not None
        assert (probe.port, probe.period, probe.timeout, probe.budget) == (8000, 10, 1, 600)
        assert found.probe("liveness") is None

    @pytest.mark.parametrize(
        ("hook", "seconds"),
        [
            ({"sleep": {"seconds": 5}}, 5),
            ({"exec": {"command": ["sleep", "35"]}}, 35),
            ({"exec": {"command": ["sh", "-c", "touch x; sleep 1m && sleep 5"]}}, 65),
            ({"exec": {"command": ["/drain"]}}, None),
        ],
    )
    def test_pre_stop(self, hook: dict[str, Any], seconds: int | None) -> None:
        pre_stop = engine(lifecycle={"preStop": hook}).container.pre_stop
        assert pre_stop is not None
        assert pre_stop.seconds == seconds

    def test_a_native_sidecar_may_be_an_engine_but_an_init_container_not(self) -> None:
        init = {"name": "x", "image": "vllm/vllm-openai:v0.33.0", "args": ["m"]}
        assert len(release(deployment(pod={"initContainers": [init]})).engines) == 1
        assert (
            len(release(deployment(pod={"initContainers": [{**init, "restartPolicy": "Always"}]})).engines)
            == 2
        )


NIXL = '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"%s"}'


class TestPairs:
    def pairs(self, *objects: dict[str, Any]) -> list[tuple[str, str]]:
        return [(one.pod.name, other.pod.name) for one, other in relations.pairs(release(*objects))]

    def engines(self, stem: str, **labels: str) -> list[dict[str, Any]]:
        return [
            deployment(f"{stem}{role}", labels={"app": f"{stem}{role}", **labels}, args=["m", NIXL % kv_role])
            for role, kv_role in (("prefill", "kv_producer"), ("decode", "kv_consumer"))
        ]

    def test_by_name(self) -> None:
        assert self.pairs(*self.engines("a-"), *self.engines("b-")) == [
            ("a-prefill", "a-decode"),
            ("b-prefill", "b-decode"),
        ]

    def test_by_pool(self) -> None:
        pool = {
            "apiVersion": "inference.networking.k8s.io/v1",
            "kind": "InferencePool",
            "metadata": {"name": "p", "namespace": "ns"},
            "spec": {"selector": {"matchLabels": {"pool": "p"}}, "targetPorts": [{"number": 8000}]},
        }
        first, _ = self.engines("a-", pool="p")
        _, second = self.engines("b-", pool="p")
        assert self.pairs(first, second) == []
        assert self.pairs(first, second, pool) == [("a-prefill", "b-decode")]

    def test_by_router(self) -> None:
        first, _ = self.engines("a-")
        _, second = self.engines("b-")
        router = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "router", "namespace": "ns"},
            "spec": {
                "containers": [
                    {
                        "name": "router",
                        "command": ["vllm-router"],
                        "args": ["--prefill", "http://p:8000", "8998", "--decode", "http://d.ns.svc:8000"],
                    }
                ]
            },
        }
        assert self.pairs(
            first, second, router, service("p", app="a-prefill"), service("d", app="b-decode")
        ) == [("a-prefill", "b-decode")]


class TestLlmd:
    """The path of the field case that is right, told in a few objects."""

    text = """
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: p, namespace: ns}
spec:
  selector: {matchLabels: {guide: g}}
  targetPorts: [{number: 8000}]
  endpointPickerRef: {name: p-epp, port: {number: 9002}}
---
{apiVersion: v1, kind: Service, metadata: {name: p-epp, namespace: ns}, spec: {selector: {app: epp}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: epp, namespace: ns}
data:
  other.yaml: |
    {apiVersion: llm-d.ai/v1alpha1, kind: EndpointPickerConfig}
  config.yaml: |
    apiVersion: llm-d.ai/v1alpha1
    kind: EndpointPickerConfig
    plugins: [{type: queue-scorer}, {type: max-score-picker, name: best}]
---
apiVersion: v1
kind: Pod
metadata: {name: epp, namespace: ns, labels: {app: epp}}
spec:
  serviceAccountName: epp
  containers:
    - {name: epp, image: "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0", args: [--config-file=/etc/config.yaml]}
  volumes: [{name: c, configMap: {name: epp}}]
---
apiVersion: v1
kind: Pod
metadata: {name: decode, namespace: ns, labels: {guide: g}}
spec:
  initContainers:
    - {name: x, image: "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0", restartPolicy: Always, args: [--port=8000]}
  containers: [{name: vllm, args: [m, --port=8200]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: epp, namespace: ns}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: epp, namespace: ns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: epp}
subjects: [{kind: ServiceAccount, name: epp, namespace: ns}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: ns}
spec: {rules: [{backendRefs: [{group: inference.networking.k8s.io, kind: InferencePool, name: p}]}]}
"""

    def test_everyone_finds_everyone(self) -> None:
        found = release(self.text)
        (pool,), (picker,), (sidecar,), (engine,) = found.pools, found.pickers, found.sidecars, found.engines
        assert relations.engines_of(found, pool) == (engine,)
        assert relations.pools_of(found, engine.pod) == (pool,)
        assert relations.picker_of(found, pool) is picker
        assert relations.pool_of(found, picker) is pool
        assert relations.sidecar_of(found, engine) is sidecar
        assert relations.engine_of(found, sidecar) is engine
        assert relations.services_of(found, picker.pod) == found.services
        assert relations.routes_to(found, "InferencePool", "p", "ns") == found.routes
        assert (sidecar.version, sidecar.arguments.number("port")) == ((0, 10, 0), 8000)

    def test_the_configuration_is_the_mounted_key(self) -> None:
        found = release(self.text)
        config = relations.config_of(found, found.pickers[0])
        assert config is not None
        assert (config.key, list(config.plugins())) == ("config.yaml", ["queue-scorer", "best"])
        assert config.plugins()["best"].location.line == 21

    def test_rights_of_a_service_account(self) -> None:
        found = release(self.text)
        picker, engine = found.pickers[0].pod, found.engines[0].pod
        assert access.allowed(found, picker, "list", "", "pods")
        assert not access.allowed(found, picker, "watch", "", "pods")
        assert not access.allowed(found, engine, "list", "", "pods")

    def test_a_binding_that_envsubst_fills_in_leaves_rights_open(self) -> None:
        (picker,) = (found := release(self.text)).pickers
        assert access.complete(found, picker.pod)
        (picker,) = (
            found := release(
                self.text.replace("ServiceAccount, name: epp,", "ServiceAccount, name: '${SA:-x}',")
            )
        ).pickers
        assert not access.complete(found, picker.pod)

    @pytest.mark.parametrize(
        ("image", "version"),
        [
            ("ghcr.io/llm-d/llm-d-inference-scheduler:v0.3.2", (0, 3, 2)),
            ("registry.k8s.io/gateway-api-inference-extension/epp:v1.3.1", (0, 5, 0)),
            ("example.net/k8s-staging-images/gateway-api-inference-extension/epp:v0.5.1", (0, 2, 0)),
            ("registry.k8s.io/gateway-api-inference-extension/epp:main", None),
            ("registry.k8s.io/gateway-api-inference-extension/epp:v9.0.0", None),
        ],
    )
    def test_the_extensions_picker_counts_as_what_was_built_on_it(
        self, image: str, version: tuple[int, ...] | None
    ) -> None:
        container = {"name": "epp", "image": image, "args": ["--pool-name=p"]}
        (picker,) = release(deployment(pod={"containers": [container]})).pickers
        assert picker.version == version

    def test_the_router_of_another_engine_is_none_of_ours(self) -> None:
        options = ["--pd-disaggregation", "--service-discovery"]
        command = ["python3", "-m", "vllm_router.launch_router", *options]
        (router,) = release(deployment(pod={"containers": [{"name": "r", "command": command}]})).routers
        assert router.kind == "vllm-router"
        command = ["python3", "-m", "sglang_router.launch_router", *options]
        assert release(deployment(pod={"containers": [{"name": "r", "command": command}]})).routers == ()


class TestMergedPods:
    """KServe's controller adds what other objects say."""

    @pytest.mark.parametrize("kind", ["LLMInferenceService", "ServingRuntime"])
    def test_what_is_absent_may_yet_come(self, kind: str) -> None:
        found = release({**deployment(), "kind": kind})
        (engine,) = found.engines
        assert engine.arguments.open
        assert engine.number("tensor-parallel-size") is None
        assert not engine.container.complete
        assert not access.complete(found, engine.pod)

    def test_other_controllers_leave_pods_as_they_are(self) -> None:
        found = release({**deployment(), "kind": "StormService"})
        (engine,) = found.engines
        assert (engine.arguments.open, engine.container.complete) == (False, True)


class TestOurCharts:
    @pytest.mark.parametrize("file", sorted(path.name for path in (ROOT / "values").glob("phase*.yaml")))
    def test_every_engine_is_read(self, render: Any, file: str) -> None:
        objects = render(f"values/{file}").by_id
        found = release(*objects.values())
        assert found.engines
        for item in found.engines:
            assert item.version is not None
            assert item.version.source in ("label", "image")
            assert None not in (item.model, item.port, item.gpus_needed)
