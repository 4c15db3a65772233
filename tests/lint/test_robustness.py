"""Whatever the input, the linter answers with findings: no traceback, no endless work."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vllm_phases import rules, sources
from vllm_phases.finding import Finding
from vllm_phases.model import Document, Release

from tests.lint.examples import KUBE_VERSION

FUZZED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Words at which readers and rules turn, so that random trees reach them.
KEYS = st.sampled_from(
    """apiVersion kind metadata spec template name namespace labels annotations containers initContainers image
    command args env envFrom valueFrom fieldRef fieldPath secretKeyRef configMapKeyRef configMapRef value key
    resources limits requests claims ports containerPort volumes volumeMounts mountPath emptyDir sizeLimit
    securityContext runAsUser startupProbe livenessProbe httpGet path port lifecycle preStop exec sleep seconds
    selector matchLabels targetPorts number endpointPickerRef services rules backendRefs group parentRefs
    triggers query scaleTargetRef data items replicas terminationGracePeriodSeconds hostNetwork nodeSelector
    serviceAccountName roleRef subjects verbs apiGroups environment deploy devices entrypoint shm_size ipc
    nvidia.com/gpu nvidia.com/gpumem nvidia.com/gpucores config.yaml plugins type parameters schedulingProfiles
    leaderWorkerTemplate workerTemplate size restartPolicy""".split()  # noqa: SIM905
)
WORDS = st.sampled_from(
    """Deployment Service InferencePool ConfigMap HTTPRoute ScaledObject Role RoleBinding NetworkPolicy List
    HorizontalPodAutoscaler ServiceMonitor LeaderWorkerSet EndpointPickerConfig apps/v1 v1 vllm serve bash -c
    inference.networking.k8s.io/v1 vllm/vllm-openai:v0.33.0 vllm/vllm-openai:v0.13.0 --port --port=8000 -tp=2
    --tensor-parallel-size=16 --kv-transfer-config --kv-transfer-config={"kv_connector":"NixlConnector"}
    --kv-transfer-config={"kv_connector":"MultiConnector","kv_connector_extra_config":{"connectors":[1,{}]}}
    --kv-transfer-config=[] --kv-transfer-config.kv_role --hf-overrides={ $(POD_IP) ${X:-"} $((1+ {{ }}
    VLLM_PORT UCX_TLS HF_TOKEN LMCACHE_CONFIG_FILE Always status.podIP 0 -1 99999999999999999999 1e309 40Gi 16
    prefill decode llm-d.ai/role nvidia.com/gpu vllm-router --prefill http://a:8000 --pool-name=x true null
    --model-server-port=8200 ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0 restartPolicy max(x{name="y"})
    ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0 lmcache/lmstack-router:v0.1""".split()  # noqa: SIM905
)
SCALARS = st.one_of(WORDS, st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12))
TREES = st.recursive(
    SCALARS,
    lambda below: (
        st.lists(below, max_size=5) | st.dictionaries(KEYS | st.text(max_size=5), below, max_size=6)
    ),
    max_leaves=40,
)
FLAGS = ("ARG00", "LINT")
VALID = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "demo"},
    "spec": {"template": {"spec": {"containers": [{"name": "vllm", "image": "vllm/vllm-openai:v0.33.0"}]}}},
}


def lint(*documents: Document) -> list[Finding]:
    found = list(rules.run(rules.Context(Release(documents), KUBE_VERSION)))
    assert not [finding for finding in found if finding.rule_id == "LINT004"], found
    assert all(finding.location for finding in found)
    return found


def lint_text(text: str, name: str = "a.yaml") -> list[Finding]:
    read = list(sources.read_text(text, name))
    documents = tuple(item for item in read if isinstance(item, Document))
    return [*(item for item in read if isinstance(item, Finding)), *lint(*documents)]


@pytest.fixture(autouse=True)
def failures_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_PHASES_TRACEBACK", "1")


class TestFuzzed:
    @FUZZED
    @given(st.dictionaries(KEYS, TREES, max_size=6))
    def test_any_object(self, tree: dict[str, Any]) -> None:
        lint(Document("a.yaml", "kubernetes", {"apiVersion": "v1", "kind": "Pod", **tree}))

    @FUZZED
    @given(WORDS, TREES, TREES)
    def test_any_kind_with_any_spec(self, kind: str, metadata: Any, spec: Any) -> None:
        group = "inference.networking.k8s.io/v1" if kind == "InferencePool" else "v1"
        lint(
            Document("a.yaml", "kubernetes", VALID),
            Document(
                "b.yaml",
                "kubernetes",
                {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec},
            ),
        )

    @FUZZED
    @given(st.dictionaries(KEYS, TREES, max_size=8), st.dictionaries(KEYS, TREES, max_size=4))
    def test_any_container_and_pod(self, container: dict[str, Any], pod: dict[str, Any]) -> None:
        engine = {"name": "vllm", "image": "vllm/vllm-openai:v0.30.0", **container}
        lint(
            Document(
                "a.yaml",
                "kubernetes",
                {**VALID, "spec": {"template": {"spec": {**pod, "containers": [engine]}}}},
            )
        )

    @FUZZED
    @given(st.dictionaries(st.text(max_size=5), st.dictionaries(KEYS, TREES, max_size=6), max_size=3))
    def test_any_compose_file(self, services: dict[str, Any]) -> None:
        lint(Document("a.yaml", "compose", {"services": services}))

    @FUZZED
    @given(
        st.lists(
            WORDS | st.sampled_from(["\n", *"';&|\"(){}<\\", "$(", "<< EOF", "EOF"]) | st.text(max_size=6)
        )
    )
    def test_any_script(self, words: list[str]) -> None:
        text = "vllm serve m " + " ".join(words)
        lint(Document("a.sh", "command", text, text))
        container = {"name": "vllm", "command": ["bash", "-c", text], "args": words}
        lint(
            Document(
                "a.yaml", "kubernetes", {**VALID, "spec": {"template": {"spec": {"containers": [container]}}}}
            )
        )

    @FUZZED
    @given(
        st.text(alphabet=st.sampled_from(list("ab:-{}[]&*!|>'\"#%@`,? \n\t\r0=<~\ufeff\x00é")), max_size=80)
    )
    def test_any_text(self, text: str) -> None:
        lint_text(text)
        lint_text(f"---\n{text}\n---\n{yaml.safe_dump(VALID)}")

    @FUZZED
    @given(st.dictionaries(KEYS, TREES, max_size=6))
    def test_places_agree_with_the_data(self, tree: dict[str, Any]) -> None:
        """Every path of the data has a place of its own, whatever the style of the YAML."""
        text = yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **tree}, allow_unicode=True)
        for document in sources.read_text(text, "a.yaml"):
            if isinstance(document, Document):
                assert set(_paths(document.tree)) <= {*document.places, ()}


def _paths(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for step, below in entries:
        found += _paths(below, (*path, step))
    return found


class TestHostileText:
    def told(self, text: str) -> str:
        (found,) = lint_text(text)
        assert found.rule_id == "LINT001"
        return found.message

    def test_aliases_that_multiply(self) -> None:
        levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))
        text = f"apiVersion: v1\nkind: Pod\na0: &a0 [{', '.join(['x'] * 9)}]\n{levels}\n"
        assert self.told(text) == (
            "is no YAML that can be read: aliases expand to far more values than are written"
        )

    def test_an_alias_of_itself(self) -> None:
        assert self.told("kind: &a {b: *a}") == (
            "is no YAML that can be read: *a names nothing that stands before it"
        )

    def test_endless_depth(self) -> None:
        assert self.told("kind: " + "[" * 150) == "is no YAML that can be read: nested more than 100 deep"
        assert self.told("kind: " + "[" * 5000) == (
            "is no YAML that can be read: exceeded maximum nesting depth"
        )

    def test_tabs(self) -> None:
        assert self.told("kind: Pod\nspec:\n\tcontainers: []\n") == (
            "is no YAML that can be read: a tab indents this line; YAML takes spaces only"
        )

    def test_a_template(self) -> None:
        (found,) = lint_text("kind: Pod\nmetadata: {name: {{ .Values.name }}}\n")
        assert (found.severity.value, found.message) == (
            "warning",
            "is a template, not a manifest: it holds {{ … }}",
        )
        assert found.location is not None
        assert found.location.line == 2

    def test_a_template_of_terraform(self) -> None:
        (found,) = lint_text("kind: Pod\n%{ if gpu }\nspec: {}\n%{ endif }\n")
        assert (found.severity.value, found.message) == (
            "warning",
            "is a template, not a manifest: it holds %{ … }",
        )


class TestHarmlessText:
    """What the readers make of it shows in the flags that are found."""

    def rule_ids(self, text: str) -> list[str]:
        return [finding.rule_id for finding in lint_text(text) if finding.rule_id.startswith(FLAGS)]

    engine = "{apiVersion: v1, kind: Pod, spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [m, --qq]}]}}"

    def test_a_broken_document_leaves_the_others(self) -> None:
        assert self.rule_ids(f"a: [\n---\n{self.engine}\n---\nb: }}\n") == ["LINT001", "LINT001", "ARG001"]

    def test_windows_line_ends_and_a_byte_order_mark(self, tmp_path: Any) -> None:
        file = tmp_path / "a.yaml"
        file.write_bytes(b"\xef\xbb\xbf" + f"# x\r\n---\r\n{self.engine}\r\n".encode())
        read = sources.read([str(file)])
        (found,) = (item for item in lint(*read.documents) if item.rule_id.startswith(FLAGS))
        assert (found.rule_id, found.location and found.location.line) == ("ARG001", 3)

    def test_json_with_tabs(self) -> None:
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "vllm", "args": ["m"]}]}}
        assert self.rule_ids(json.dumps(pod, indent="\t")) == ["LINT003"]

    def test_a_list_object(self) -> None:
        (found, *_) = lint_text(
            f"apiVersion: v1\nkind: List\nitems:\n- kind: Secret\n  apiVersion: v1\n- {self.engine}\n"
        )
        assert (found.object, found.path) == ("Pod/", "items[1].spec.containers[0].args[1]")

    def test_anchors_and_merges(self) -> None:
        text = """
apiVersion: v1
kind: Pod
x: &engine {name: vllm, image: "vllm/vllm-openai:v0.33.0"}
spec: {containers: [{<<: *engine, args: [m, --qq]}]}
"""
        assert self.rule_ids(text) == ["ARG001"]

    def test_unknown_kinds(self) -> None:
        assert self.rule_ids("apiVersion: example.net/v7\nkind: Whatever\nspec: {a: {b: [c]}}\n") == []

    def test_a_hole_inside_a_text(self) -> None:
        text = self.engine.replace("--qq", '"--port={{ port }}"')
        assert self.rule_ids(text) == []

    def test_too_large_or_not_text(self, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("vllm_phases.sources.files.MAX_BYTES", 10)
        large, binary = tmp_path / "large.yaml", tmp_path / "binary.yaml"
        large.write_text("a: " + "b" * 100)
        binary.write_bytes(b"\xff\xfe")
        messages = [finding.message for finding in sources.read([str(large), str(binary)]).findings]
        assert messages == ["is larger than 0 MiB", "is not UTF-8 text (byte 0)"]
