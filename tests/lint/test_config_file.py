"""`vllm serve --config FILE`: where the file is found, and what its options count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from vllm_phases import rules, sources
from vllm_phases.model import Document, Engine, Release

if TYPE_CHECKING:
    from pathlib import Path

    from vllm_phases.finding import Finding

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: demo}
spec:
  containers:
    - name: vllm
      image: vllm/vllm-openai:v0.33.0
      args: [Qwen/Qwen3-8B, --config, /etc/vllm/config.yaml, --port=8001]
      volumeMounts: [{name: config, mountPath: /etc/vllm}]
  volumes: [{name: config, configMap: {name: settings}}]
"""
CONFIG_MAP = """\
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  config.yaml: |
    port: 8000
    max-num-seqs: 64
    enable-prefix-caching: false
    enforce-eager: true
    served-model-name: [chat, qwen]
    kv-transfer-config:
      kv_connector: NixlConnector
      kv_role: kv_both
"""


def release(text: str, name: str = "d.yaml", version: str | None = None) -> Release:
    return Release(tuple(it for it in sources.read_text(text, name) if isinstance(it, Document)), version)


def engine(text: str, name: str = "d.yaml", version: str | None = None) -> Engine:
    (found,) = release(text, name, version).engines
    return found


def told(found: Release, *ids: str) -> list[str]:
    findings: list[Finding] = list(rules.run(rules.Context(found, "1.34.0"), rules.Selection(ids)))
    return [f"{it.location} {it.severity.value} {it.rule_id} {it.object}" for it in findings]


def test_the_options_of_the_file_count_before_those_of_the_command_line() -> None:
    found = engine(POD + CONFIG_MAP)
    assert [word.text for word in found.words] == [
        "Qwen/Qwen3-8B",
        *("--port", "8000", "--max-num-seqs", "64", "--no-enable-prefix-caching", "--enforce-eager"),
        *("--served-model-name", "chat", "qwen"),
        *("--kv-transfer-config", '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'),
        "--port=8001",
    ]
    assert (found.port, found.number("max-num-seqs"), found.arguments.open) == (8001, 64, False)
    assert found.truth("enable-prefix-caching") is False
    assert found.kv is not None
    assert found.kv.connector == "NixlConnector"


def test_a_finding_points_to_the_line_of_the_config_map() -> None:
    text = POD + CONFIG_MAP.replace("max-num-seqs", "max-num-seq-s")
    assert told(release(text), "ARG001") == ["d.yaml:18:5 error ARG001 ConfigMap/settings"]


def test_an_option_on_the_command_line_overrides_the_file_without_a_word() -> None:
    assert told(release(POD + CONFIG_MAP), "ARG") == []


def test_the_model_may_stand_in_the_file_only() -> None:
    text = POD.replace("Qwen/Qwen3-8B, ", "") + CONFIG_MAP
    assert told(release(text), "ARG") == ["d.yaml:17:5 error ARG017 ConfigMap/settings"]
    named = text.replace("    port: 8000\n", "    model: Qwen/Qwen3-8B\n")
    assert told(release(named), "ARG") == []
    assert engine(named).model == "Qwen/Qwen3-8B"


def test_a_model_in_first_place_wins_over_that_of_the_file() -> None:
    text = POD + CONFIG_MAP.replace("    port: 8000\n", "    model: Qwen/Qwen3-0.6B\n")
    assert engine(text).model == "Qwen/Qwen3-8B"
    assert told(release(text), "ARG") == []


@pytest.mark.parametrize("hidden", ["", CONFIG_MAP.replace("config.yaml:", "other.yaml:")])
def test_without_the_file_the_flags_are_not_all_known(hidden: str) -> None:
    found = engine(POD + hidden)
    assert found.config is None
    assert found.arguments.open


def test_what_a_template_fills_in_is_not_known() -> None:
    found = engine(POD + CONFIG_MAP.replace("max-num-seqs: 64", "max-num-seqs: ${SEQS}"))
    assert found.number("max-num-seqs") is None
    assert not found.arguments.open
    assert told(release(POD + CONFIG_MAP.replace("64", "${SEQS}")), "ARG") == []


def test_false_and_mappings_by_release() -> None:
    text = POD + CONFIG_MAP
    assert told(release(text, version="0.27.1"), "ARG023") == [
        "d.yaml:19:5 warning ARG023 ConfigMap/settings"
    ]
    assert engine(text, version="0.27.1").arguments.last("enable-prefix-caching") is None
    assert told(release(text, version="0.15.1"), "ARG023") == [
        "d.yaml:19:5 warning ARG023 ConfigMap/settings",
        "d.yaml:22:5 error ARG023 ConfigMap/settings",
    ]
    assert told(release(text, version="0.28.0"), "ARG023") == []


def test_one_word_is_passed_over_by_vllm() -> None:
    found = release(POD.replace("--config, ", "--config=") + CONFIG_MAP)
    assert told(found, "ARG022") == ["d.yaml:8:29 error ARG022 Pod/demo"]
    assert found.engines[0].config is None


def test_a_key_of_the_config_map_may_have_another_path() -> None:
    items = "configMap: {name: settings, items: [{key: engine.yaml, path: config.yaml}]}"
    text = POD.replace("configMap: {name: settings}", items)
    assert engine(text + CONFIG_MAP.replace("config.yaml:", "engine.yaml:")).number("max-num-seqs") == 64
    by_path = POD.replace("mountPath: /etc/vllm", "mountPath: /etc/vllm/config.yaml, subPath: engine.yaml")
    assert engine(by_path + CONFIG_MAP.replace("config.yaml:", "engine.yaml:")).number("max-num-seqs") == 64


SCRIPT = """\
#!/bin/bash
cat > /tmp/config.yaml <<'EOF'
max-num-seqs: 64
prot: 8000
EOF
vllm serve Qwen/Qwen3-8B --config /tmp/config.yaml
"""


@pytest.mark.parametrize(
    "writer", ["cat > /tmp/config.yaml <<'EOF'", "tee /tmp/config.yaml <<EOF >/dev/null"]
)
def test_a_here_document_of_the_script(writer: str) -> None:
    text = SCRIPT.replace("cat > /tmp/config.yaml <<'EOF'", writer)
    found = release(text, "run.sh", "0.33.0")
    assert found.engines[0].number("max-num-seqs") == 64
    assert told(found, "ARG001") == ["run.sh:4:1 error ARG001 "]


def test_a_here_document_of_a_container() -> None:
    script = "\n".join(f"          {line}" for line in SCRIPT.splitlines()[1:])
    text = POD.replace(
        "      args: [Qwen/Qwen3-8B, --config, /etc/vllm/config.yaml, --port=8001]",
        f"      command:\n        - bash\n        - -c\n        - |\n{script}",
    )
    assert told(release(text), "ARG001") == ["d.yaml:14:11 error ARG001 Pod/demo"]


COMPOSE = """\
services:
  engine:
    image: vllm/vllm-openai:v0.33.0
    command: [Qwen/Qwen3-8B, --config, /etc/vllm.yaml]
    configs: [{source: settings, target: /etc/vllm.yaml}]
configs:
  settings:
    content: |
      max-num-seqs: 64
      prot: 8000
"""


def test_configs_of_a_compose_file() -> None:
    found = release(COMPOSE, "compose.yaml")
    assert found.engines[0].number("max-num-seqs") == 64
    assert told(found, "ARG001") == ["compose.yaml:10:7 error ARG001 "]


@pytest.mark.parametrize(
    ("inline", "beside", "subject"),
    [
        ("    content: |\n      max-num-seqs: 64\n      prot: 8000\n", "    file: ./conf/vllm.yaml\n", ""),
        (
            COMPOSE[COMPOSE.index("    configs:") :],
            "    volumes: ['./conf/vllm.yaml:/etc/vllm.yaml:ro']\n",
            "services/engine",
        ),
        (COMPOSE[COMPOSE.index("    configs:") :], "    volumes: ['./conf:/etc']\n", "services/engine"),
    ],
)
def test_a_file_beside_the_compose_file(tmp_path: Path, inline: str, beside: str, subject: str) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "vllm.yaml").write_text("max-num-seqs: 64\nprot: 8000\n")
    file = tmp_path / "compose.yaml"
    file.write_text(COMPOSE.replace(inline, beside))
    found = Release(sources.read([str(file)]).documents)
    assert found.engines[0].number("max-num-seqs") == 64
    assert told(found, "ARG001") == [f"{tmp_path}/conf/vllm.yaml:2:1 error ARG001 {subject}"]


@pytest.mark.parametrize("name", ["x" * 300, "a\\0b", "missing", "."])
def test_a_name_that_no_file_has_is_no_failure(tmp_path: Path, name: str) -> None:
    file = tmp_path / "compose.yaml"
    volumes = f'    volumes: ["./{name}:/etc/vllm.yaml"]\n'
    file.write_text(COMPOSE.replace(COMPOSE[COMPOSE.index("    configs:") :], volumes))
    (found,) = Release(sources.read([str(file)]).documents).engines
    assert found.config is None
    assert found.arguments.open


@pytest.mark.parametrize("path", ["../vllm.yaml", "/vllm.yaml"])
def test_a_file_elsewhere_is_not_read(tmp_path: Path, path: str) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "vllm.yaml").write_text("prot: 8000\n")
    file = tmp_path / "below" / "compose.yaml"
    volumes = f"    volumes: ['{path if path[0] == '.' else str(tmp_path) + path}:/etc/vllm.yaml']\n"
    file.write_text(COMPOSE.replace(COMPOSE[COMPOSE.index("    configs:") :], volumes))
    (found,) = Release(sources.read([str(file)]).documents).engines
    assert found.config is None
