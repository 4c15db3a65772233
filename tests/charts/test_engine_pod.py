"""The engine pod: image, environment, model, volumes, probes, drain, resources, security."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.charts.containers import argv, engine, env, mounts, pod, volumes

if TYPE_CHECKING:
    from tests.conftest import Render

PHASE1 = "values/phase1.yaml"


def vllm(**values: Any) -> dict[str, Any]:
    return {"global": {"vllm": values}}


def base(**values: Any) -> dict[str, Any]:
    return {"base": values}


class TestImage:
    @pytest.mark.parametrize(
        ("accelerator", "image"),
        [
            ("nvidia", "vllm/vllm-openai:v0.33.0"),
            ("amd", "vllm/vllm-openai-rocm:v0.33.0"),
            ("intel", "vllm/vllm-openai-xpu:v0.33.0"),
            ("cpu", "vllm/vllm-openai-cpu:v0.33.0"),
        ],
    )
    def test_the_official_one_of_version_and_accelerator(
        self, render: Render, accelerator: str, image: str
    ) -> None:
        assert engine(render(PHASE1, values=vllm(accelerator=accelerator)))["image"] == image

    def test_the_digest_wins_over_the_tag(self, render: Render) -> None:
        digest = "sha256:" + "0" * 64
        image = {
            "repository": "registry.example.com/vllm",
            "tag": "mine",
            "digest": digest,
            "pullSecrets": ["a"],
        }
        objects = render(PHASE1, values=vllm(image=image))
        assert engine(objects)["image"] == f"registry.example.com/vllm@{digest}"
        assert pod(objects)["imagePullSecrets"] == [{"name": "a"}]

    def test_a_version_is_needed_beside_a_digest(self, render: Render) -> None:
        message = render.error(PHASE1, values=vllm(version="", image={"digest": "sha256:" + "0" * 64}))
        assert "/global/vllm/version" in message


class TestEnvironment:
    def test_every_cache_lies_below_one_path(self, render: Render) -> None:
        caches = dict(env(render(PHASE1, values=base(cache={"mountPath": "/fast"}))).items())
        below = sorted(name for name, value in caches.items() if str(value).startswith("/fast/"))
        assert below == [
            "CUDA_CACHE_PATH",
            "DG_JIT_CACHE_DIR",
            "FLASHINFER_WORKSPACE_BASE",
            "HF_HOME",
            "OUTLINES_CACHE_DIR",
            "TORCHINDUCTOR_CACHE_DIR",
            "TRITON_CACHE_DIR",
            "VLLM_CACHE_ROOT",
            "XDG_CACHE_HOME",
        ]
        assert not [name for name, value in caches.items() if str(value).startswith("/cache")]

    def test_the_pod_address_comes_before_what_may_use_it(self, render: Render) -> None:
        objects = render(PHASE1, values=vllm(env={"A_HOST": "$(POD_IP)"}))
        names = [item["name"] for item in engine(objects)["env"]]
        assert names[0] == "POD_IP"
        assert len(names) == len(set(names))

    def test_values_keep_their_text(self, render: Render) -> None:
        values = {"TEXT": "a: b #c", "NUMBER": 1048576, "FLAG": True, "EMPTY": "", "GONE": None}
        found = env(render(PHASE1, values=vllm(env=values)))
        assert [found.get(name) for name in values] == ["a: b #c", "1048576", "true", "", None]

    def test_role_wins_over_global(self, render: Render) -> None:
        objects = render(PHASE1, values=vllm(env={"NCCL_DEBUG": "INFO"}) | base(env={"NCCL_DEBUG": "WARN"}))
        assert env(objects)["NCCL_DEBUG"] == "WARN"

    def test_secrets_are_referred_to_by_name(self, render: Render) -> None:
        values = vllm(
            huggingface={"tokenSecret": {"name": "hub", "key": "t"}, "endpoint": "https://hub.example.com"},
            auth={"apiKeySecret": {"name": "api", "key": "k"}},
        )
        found = env(render(PHASE1, values=values))
        assert found["HF_TOKEN"] == {"secretKeyRef": {"name": "hub", "key": "t"}}
        assert found["VLLM_API_KEY"] == {"secretKeyRef": {"name": "api", "key": "k"}}
        assert found["HF_ENDPOINT"] == "https://hub.example.com"

    def test_value_from(self, render: Render) -> None:
        source = {"fieldRef": {"fieldPath": "spec.nodeName"}}
        assert env(render(PHASE1, values=base(env={"NODE": {"valueFrom": source}})))["NODE"] == source

    def test_the_ready_timeout_follows_the_startup_budget_where_the_engine_reads_it(
        self, render: Render
    ) -> None:
        values = base(startup={"budgetSeconds": 3600})
        assert env(render(PHASE1, values=values))["VLLM_ENGINE_READY_TIMEOUT_S"] == "3600"
        old = render(PHASE1, values=values | vllm(version="0.12.0"))
        assert "VLLM_ENGINE_READY_TIMEOUT_S" not in env(old)


class TestModel:
    def test_from_the_hub_at_a_revision(self, render: Render) -> None:
        items = argv(render(PHASE1, values=vllm(model={"revision": "abc"})))
        assert items[0] == "Qwen/Qwen3-8B"
        assert "--revision=abc" in items

    @pytest.mark.parametrize(
        ("source", "path", "volume"),
        [
            (
                {"type": "pvc", "pvc": {"claimName": "models", "path": "q/8b"}},
                "/model/q/8b",
                {"persistentVolumeClaim": {"claimName": "models", "readOnly": True}},
            ),
            (
                {"type": "oci", "oci": {"reference": "registry.example.com/m:1"}},
                "/model",
                {"image": {"reference": "registry.example.com/m:1", "pullPolicy": "IfNotPresent"}},
            ),
            (
                {"type": "hostPath", "hostPath": {"path": "/mnt/m"}},
                "/model",
                {"hostPath": {"path": "/mnt/m", "type": "Directory"}},
            ),
        ],
        ids=["pvc", "oci", "hostPath"],
    )
    def test_a_mounted_source_keeps_the_name_that_clients_know(
        self, render: Render, source: dict[str, Any], path: str, volume: dict[str, Any]
    ) -> None:
        objects = render(PHASE1, values=vllm(model={"source": source}))
        items = argv(objects)
        assert items[0] == path
        assert items[items.index("--served-model-name") + 1] == "Qwen/Qwen3-8B"
        assert volumes(objects)["model"] == {"name": "model", **volume}
        assert mounts(objects)["/model"]["readOnly"] is True

    def test_served_names(self, render: Render) -> None:
        items = argv(render(PHASE1, values=vllm(model={"servedNames": ["chat", "big"]})))
        at = items.index("--served-model-name")
        assert items[at + 1 : at + 3] == ["chat", "big"]

    def test_offline_works_with_a_cache_that_outlives_the_pod(self, render: Render) -> None:
        values = vllm(huggingface={"offline": True}) | base(cache={"type": "pvc"})
        assert env(render(PHASE1, values=values))["HF_HUB_OFFLINE"] == "1"


class TestVolumes:
    def test_the_default_cache_is_bounded(self, render: Render) -> None:
        assert volumes(render(PHASE1))["cache"] == {"name": "cache", "emptyDir": {"sizeLimit": "50Gi"}}

    def test_an_ephemeral_claim_lives_with_each_pod(self, render: Render) -> None:
        cache = {"type": "ephemeral", "size": "200Gi", "storageClassName": "fast"}
        claim = volumes(render(PHASE1, values=base(cache=cache, replicas=3)))["cache"]["ephemeral"]
        assert claim["volumeClaimTemplate"]["spec"] == {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "200Gi"}},
        }

    def test_the_chart_makes_a_claim_and_keeps_it(self, render: Render) -> None:
        objects = render(PHASE1, values=base(cache={"type": "pvc"}))
        claim = objects.get("PersistentVolumeClaim/demo-server-cache")
        assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
        assert volumes(objects)["cache"]["persistentVolumeClaim"] == {"claimName": "demo-server-cache"}

    def test_an_existing_claim_is_used_as_it_is(self, render: Render) -> None:
        objects = render(PHASE1, values=base(cache={"type": "pvc", "existingClaim": "mine"}))
        assert volumes(objects)["cache"]["persistentVolumeClaim"] == {"claimName": "mine"}
        assert not [name for name in objects.ids if name.startswith("PersistentVolumeClaim/")]

    def test_shared_memory_where_one_pod_runs_several_ranks(self, render: Render) -> None:
        assert "/dev/shm" not in mounts(render(PHASE1))
        for parallelism in ({"tensor": 2}, {"pipeline": 2}, {"data": 2}):
            objects = render(PHASE1, values=base(parallelism=parallelism))
            assert volumes(objects)["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "2Gi"}
            assert "/dev/shm" in mounts(objects)

    @pytest.mark.parametrize(
        ("values", "size"),
        [
            (base(shm={"mode": "always"}), "2Gi"),
            (base(shm={"mode": "always", "size": "16Gi"}), "16Gi"),
            (vllm(accelerator="cpu"), "2Gi"),
            (base(shm={"mode": "always"}) | vllm(accelerator="amd"), "8Gi"),
            (base(shm={"mode": "never"}, parallelism={"tensor": 2}), None),
        ],
    )
    def test_shared_memory_can_be_told(
        self, render: Render, values: dict[str, Any], size: str | None
    ) -> None:
        shm = volumes(render(PHASE1, values=values)).get("shm")
        assert (shm and shm["emptyDir"]["sizeLimit"]) == size


class TestProbesAndDrain:
    @pytest.mark.parametrize(("budget", "failures"), [(10, 1), (600, 60), (601, 61), (1800, 180)])
    def test_the_startup_probe_is_the_budget(self, render: Render, budget: int, failures: int) -> None:
        probe = engine(render(PHASE1, values=base(startup={"budgetSeconds": budget})))["startupProbe"]
        assert (probe["periodSeconds"], probe["failureThreshold"]) == (10, failures)

    def test_every_probe_asks_the_port_of_the_server(self, render: Render) -> None:
        container = engine(render(PHASE1, values=base(port=9000)))
        assert container["ports"] == [{"name": "http", "containerPort": 9000}]
        assert "--port=9000" in container["args"]
        for kind in ("startup", "liveness", "readiness"):
            assert container[f"{kind}Probe"]["httpGet"] == {
                "path": "/health",
                "port": "http",
                "scheme": "HTTP",
            }
            assert container[f"{kind}Probe"]["timeoutSeconds"] >= 5

    def test_tls_turns_probes_monitor_and_test_to_https(self, render: Render) -> None:
        objects = render(PHASE1, values=vllm(tls={"secretName": "t"}, monitoring={"kind": "podMonitor"}))
        container = engine(objects)
        assert {
            container[f"{kind}Probe"]["httpGet"]["scheme"] for kind in ("startup", "liveness", "readiness")
        } == {"HTTPS"}
        assert {"--ssl-certfile=/tls/tls.crt", "--ssl-keyfile=/tls/tls.key"} <= set(container["args"])
        assert volumes(objects)["tls"]["secret"] == {"secretName": "t"}
        assert objects.get("PodMonitor/demo-server")["spec"]["podMetricsEndpoints"][0]["scheme"] == "https"
        test = objects.get("Pod/demo-test")["spec"]["containers"][0]
        assert test["env"][0] == {"name": "VLLM_TEST_URL", "value": "https://demo-front-door:80"}

    @pytest.mark.parametrize(("version", "sleep"), [("0.33.0", "20"), ("0.17.1", "80")])
    def test_wait_drain_and_grace_are_one_sum(self, render: Render, version: str, sleep: str) -> None:
        """An engine that cannot drain after the signal gets the time before it."""
        values = base(drain={"preStopSeconds": 20, "timeoutSeconds": 60}) | vllm(version=version)
        objects = render(PHASE1, values=values)
        assert engine(objects)["lifecycle"] == {"preStop": {"exec": {"command": ["sleep", sleep]}}}
        assert pod(objects)["terminationGracePeriodSeconds"] == 95

    def test_no_wait_means_no_hook(self, render: Render) -> None:
        assert "lifecycle" not in engine(render(PHASE1, values=base(drain={"preStopSeconds": 0})))


class TestResources:
    @pytest.mark.parametrize(
        ("accelerator", "resource"),
        [("nvidia", "nvidia.com/gpu"), ("amd", "amd.com/gpu"), ("intel", "gpu.intel.com/i915")],
    )
    def test_the_gpu_count_is_derived(self, render: Render, accelerator: str, resource: str) -> None:
        values = base(parallelism={"tensor": 2, "pipeline": 2, "data": 2}) | vllm(accelerator=accelerator)
        found = engine(render(PHASE1, values=values))["resources"]
        assert found["limits"][resource] == found["requests"][resource] == "8"

    def test_cpu_asks_for_no_gpu(self, render: Render) -> None:
        found = engine(render(PHASE1, "values/overlays/cpu.yaml"))["resources"]
        assert sorted(found["limits"]) == ["memory"]

    def test_extended_resources_ask_and_limit_alike(self, render: Render) -> None:
        values = base(resources={"extended": {"rdma/ib": 1}, "gpuResource": "nvidia.com/mig-3g.40gb"})
        found = engine(render(PHASE1, values=values))["resources"]
        for kind in ("requests", "limits"):
            assert found[kind]["rdma/ib"] == found[kind]["nvidia.com/mig-3g.40gb"] == "1"
            assert "nvidia.com/gpu" not in found[kind]

    @pytest.mark.parametrize("count", [0.5, "1", 0])
    def test_fractions_of_a_device_are_refused(self, render: Render, count: Any) -> None:
        message = render.error(PHASE1, values=base(resources={"extended": {"rdma/ib": count}}))
        assert "/base/resources/extended/rdma~1ib" in message

    def test_side_containers_hold_no_gpu(self, render: Render) -> None:
        objects = render(PHASE1, values=base(extraContainers=[{"name": "side", "image": "busybox:1.37"}]))
        assert "resources" not in pod(objects)["containers"][1]


class TestSecurity:
    def test_the_pod_passes_the_restricted_level(self, render: Render) -> None:
        objects = render(PHASE1)
        assert pod(objects)["automountServiceAccountToken"] is False
        assert objects.get("ServiceAccount/demo-server")["automountServiceAccountToken"] is False
        assert pod(objects)["enableServiceLinks"] is False
        assert pod(objects)["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": 2000,
            "runAsGroup": 0,
            "fsGroup": 0,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert engine(objects)["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }

    @pytest.mark.parametrize(
        ("values", "user", "non_root"),
        [
            (vllm(version="0.21.0"), 0, None),
            (vllm(accelerator="amd"), 0, None),
            (vllm(version="0.21.0", security={"runAsUser": 1000}), 1000, True),
            (vllm(security={"runAsUser": 0}), 0, None),
            (vllm(security={"assignedUid": True}), None, True),
        ],
    )
    def test_the_user_follows_version_and_platform(
        self, render: Render, values: dict[str, Any], user: int | None, non_root: bool | None
    ) -> None:
        context = pod(render(PHASE1, values=values))["securityContext"]
        assert (context.get("runAsUser"), context.get("runAsNonRoot")) == (user, non_root)
        assert ("fsGroup" in context) == (user is not None)

    def test_an_assigned_user_has_home_and_name(self, render: Render) -> None:
        objects = render(PHASE1, "values/overlays/openshift.yaml")
        assert (env(objects)["HOME"], env(objects)["USER"]) == ("/home/vllm", "vllm")

    def test_all_that_is_written_is_mounted_writable(self, render: Render) -> None:
        found = mounts(render(PHASE1))
        assert [path for path in ("/home/vllm", "/tmp", "/cache") if found[path].get("readOnly")] == []
        assert found["/home/vllm"]["name"] == found["/tmp"]["name"] == "scratch"
        assert found["/home/vllm"]["subPath"] != found["/tmp"]["subPath"]

    def test_the_notes_warn_where_engines_run_as_root(self, render: Render) -> None:
        assert "engines run as root" in render(PHASE1, values=vllm(version="0.21.0")).notes
        assert "engines run as root" not in render(PHASE1).notes


class TestScheduling:
    def test_every_field_reaches_the_pod(self, render: Render) -> None:
        scheduling: dict[str, Any] = {
            "nodeSelector": {"a": "b"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
            "priorityClassName": "high",
            "runtimeClassName": "nvidia",
            "schedulerName": "other",
        }
        spec = pod(render(PHASE1, values=base(scheduling=scheduling)))
        assert {field: spec[field] for field in scheduling} == scheduling

    def test_nothing_is_rendered_by_default(self, render: Render) -> None:
        spec = pod(render(PHASE1))
        fields = {"nodeSelector", "tolerations", "affinity", "priorityClassName", "runtimeClassName"}
        assert not fields & set(spec)

    def test_a_spread_constraint_gets_the_role_as_its_selector(self, render: Render) -> None:
        constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        own = {**constraint, "labelSelector": {"matchLabels": {"a": "b"}}}
        objects = render(PHASE1, values=base(scheduling={"topologySpread": [constraint, own]}))
        selector = objects.get("Deployment/demo-server")["spec"]["selector"]
        assert pod(objects)["topologySpreadConstraints"] == [{**constraint, "labelSelector": selector}, own]


class TestEscapeHatches:
    def test_extra_fields_are_merged_last(self, render: Render) -> None:
        objects = render(
            PHASE1,
            values=base(
                extraPodSpec={"hostIPC": True, "terminationGracePeriodSeconds": 7},
                extraContainerSpec={"stdin": True},
                extraEnvFrom=[{"secretRef": {"name": "s"}}],
                extraInitContainers=[{"name": "i", "image": "busybox:1.37"}],
            ),
        )
        assert (pod(objects)["hostIPC"], pod(objects)["terminationGracePeriodSeconds"]) == (True, 7)
        assert (engine(objects)["stdin"], engine(objects)["envFrom"]) == (
            True,
            [{"secretRef": {"name": "s"}}],
        )
        assert pod(objects)["initContainers"] == [{"name": "i", "image": "busybox:1.37"}]
