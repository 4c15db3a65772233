"""The talk's way to prefill and decode, as it was shown, judged for the releases around it.

Two commands and a Deployment with P2pNcclConnector: both roles on one GPU, wired by kv_rank and kv_parallel_size,
in 32 GiB of memory. Each release has its own list of what is wrong, and nothing else is an error.
"""

from __future__ import annotations

from collections import Counter

import pytest
from vllm_phases import rules, sources
from vllm_phases.finding import Finding, Severity
from vllm_phases.model import Document, Release

KUBE_VERSION = "1.35.0"
COMMANDS = """\
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=29500

CUDA_VISIBLE_DEVICES=0 vllm serve meta-llama/Llama-3.1-8B-Instruct --port 8100 \\
  --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_rank":0,"kv_parallel_size":2}' &

CUDA_VISIBLE_DEVICES=0 vllm serve meta-llama/Llama-3.1-8B-Instruct --port 8200 \\
  --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_consumer","kv_rank":1,"kv_parallel_size":2}'
"""
PREFILL, DECODE, START = 5, 8, 7  # the lines with the configurations, and where decode starts
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: vllm-prefill}
spec:
  replicas: 1
  selector: {matchLabels: {app: vllm-prefill}}
  template:
    metadata: {labels: {app: vllm-prefill}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:latest
          args:
            - meta-llama/Llama-3.1-8B-Instruct
            - --kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_rank":0,"kv_parallel_size":2}
          ports: [{containerPort: 8000}]
          resources:
            limits:
              nvidia.com/gpu: "1"
              memory: 32Gi
"""
CONFIG, MEMORY = 15, 20
WINDOWS = pytest.mark.parametrize("version", ["0.14.0", "0.15.1", "0.16.0"])


def judged(text: str, file: str, version: str) -> list[Finding]:
    documents = tuple(found for found in sources.read_text(text, file) if isinstance(found, Document))
    return list(rules.run(rules.Context(Release(documents, version), KUBE_VERSION)))


def at(found: list[Finding], *severities: Severity, topic: str = "") -> Counter[tuple[str, int]]:
    """Rule and line of the findings of some severities."""
    return Counter(
        (finding.rule_id, finding.location.line)
        for finding in found
        if finding.severity in severities and finding.location and finding.rule_id.startswith(topic)
    )


class TestCommands:
    def test_in_0_23_the_second_finds_no_memory_and_requests_would_hang(self) -> None:
        found = judged(COMMANDS, "talk.sh", "0.23.0")
        assert at(found, Severity.ERROR) == Counter(
            {
                ("KV060", PREFILL): 1,  # request ids are changed and every request hangs
                ("KV060", DECODE): 1,
                ("KV031", DECODE): 1,  # both bind 14579
                ("KV065", START): 1,  # NCCL refuses two ranks on one card
                ("SHR035", START): 1,  # 0.92 of the card twice
            }
        )
        assert at(found, Severity.WARNING, topic="KV") == Counter(
            {
                ("KV005", PREFILL): 1,  # kv_rank and kv_parallel_size wire nothing
                ("KV005", DECODE): 1,
                ("KV061", PREFILL): 1,  # there is no proxy, which would have to make the request ids
                ("KV061", DECODE): 1,
            }
        )

    def test_in_0_33_neither_starts(self) -> None:
        found = judged(COMMANDS, "talk.sh", "0.33.0")
        fields = {("KV002", line): 2 for line in (PREFILL, DECODE)}  # kv_rank, kv_parallel_size
        gone = {("KV001", line): 1 for line in (PREFILL, DECODE)}  # P2pNcclConnector
        assert at(found, Severity.ERROR) == Counter({**fields, **gone, ("SHR035", START): 1})
        assert at(found, Severity.WARNING, topic="KV") == Counter()

    @pytest.mark.parametrize("version", ["0.23.0", "0.33.0"])
    def test_one_card_is_too_small_for_both(self, version: str) -> None:
        found = judged(COMMANDS, "talk.sh", version)
        (finding,) = [finding for finding in found if finding.rule_id == "SHR035"]
        assert finding.severity is Severity.ERROR
        assert finding.message.startswith("two engines take 0.92 and 0.92 of the same card")

    @pytest.mark.parametrize(
        ("written", "otherwise"),
        [
            ("}' &\n", "}'\n"),  # for two terminals, maybe of two machines
            ("CUDA_VISIBLE_DEVICES=0 vllm serve", "if true; then CUDA_VISIBLE_DEVICES=0 vllm serve"),
        ],
    )
    def test_commands_that_may_not_run_together_are_a_warning(self, written: str, otherwise: str) -> None:
        found = judged(COMMANDS.replace(written, otherwise, 1), "talk.sh", "0.33.0")
        (finding,) = [finding for finding in found if finding.rule_id == "SHR035"]
        assert finding.severity is Severity.WARNING

    def test_a_pipeline_in_the_background_counts_as_a_whole(self) -> None:
        found = judged(COMMANDS.replace("}' &\n", "}' 2>&1 | tee log &\n", 1), "talk.sh", "0.33.0")
        (finding,) = [finding for finding in found if finding.rule_id == "SHR035"]
        assert finding.severity is Severity.ERROR

    def test_from_0_24_to_0_31_the_arguments_are_taken_and_the_engine_is_not_made(self) -> None:
        found = judged(COMMANDS, "talk.sh", "0.31.0")
        gone = {("KV001", PREFILL): 1, ("KV001", DECODE): 1}
        assert at(found, Severity.ERROR) == Counter({**gone, ("SHR035", START): 1})

    @WINDOWS
    def test_from_0_14_to_0_16_no_setting_helps(self, version: str) -> None:
        text = f"export VLLM_DISABLE_REQUEST_ID_RANDOMIZATION=1; {COMMANDS}"
        found = judged(text, "talk.sh", version)
        remedies = {finding.remediation for finding in found if finding.rule_id == "KV060"}
        assert remedies == {
            "Run 0.13 or older, or 0.17 to 0.23, or set NixlConnector: no setting helps in this release."
        }

    @pytest.mark.parametrize("version", ["0.13.0", "0.23.0"])
    def test_told_what_they_lack_they_are_right(self, version: str) -> None:
        """The window in which the connector works, on two cards and with a proxy."""
        text = COMMANDS.replace("DEVICES=0", "DEVICES=1", 1)
        for role, port in (("producer", 8100), ("consumer", 8200)):
            given = (
                f'"kv_port":"{port + 10000}","kv_connector_extra_config":'
                f'{{"proxy_ip":"127.0.0.1","proxy_port":"30001","http_port":"{port}"}}'
            )
            rank = 0 if role == "producer" else 1
            text = text.replace(f'"kv_rank":{rank},"kv_parallel_size":2', given)
        found = judged(f"export VLLM_DISABLE_REQUEST_ID_RANDOMIZATION=1\n{text}", "talk.sh", version)
        assert at(found, Severity.ERROR, Severity.WARNING, topic="KV") == Counter()


class TestDeployment:
    def test_in_0_23_it_is_killed_at_start(self) -> None:
        found = judged(DEPLOYMENT, "talk.yaml", "0.23.0")
        assert at(found, Severity.ERROR) == Counter({("KV060", CONFIG): 1, ("KV063", MEMORY): 1})
        assert at(found, Severity.WARNING, topic="KV") == Counter(
            {("KV005", CONFIG): 1, ("KV061", CONFIG): 1}
        )

    def test_in_0_33_it_does_not_start(self) -> None:
        found = judged(DEPLOYMENT, "talk.yaml", "0.33.0")
        assert at(found, Severity.ERROR) == Counter({("KV001", CONFIG): 1, ("KV002", CONFIG): 2})
        assert at(found, Severity.WARNING, topic="KV") == Counter()

    def test_a_smaller_pool_fits(self) -> None:
        text = DEPLOYMENT.replace(
            '"kv_parallel_size":2', '"kv_connector_extra_config":{"mem_pool_size_gb":4}'
        ).replace('"kv_rank":0,', "")
        found = judged(text, "talk.yaml", "0.23.0")
        assert at(found, Severity.ERROR) == Counter({("KV060", CONFIG): 1})
