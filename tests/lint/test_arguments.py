"""What is said of flags, beyond whether it is said."""

from __future__ import annotations

from vllm_phases import rules
from vllm_phases.rules.registry import Example

from tests.lint.examples import findings


def test_a_flag_older_than_the_catalogue_has_a_successor() -> None:
    text = "args: [Qwen/Qwen3-8B, --num-scheduler-steps=8]\n"
    (found,) = findings(Example("yaml", text), rules.Selection(("ARG001",)))
    assert found.message == "vLLM 0.33.0 has no flag --num-scheduler-steps any more"
    assert found.remediation == "Leave it out; see --async-scheduling."


def test_one_that_is_now_the_beginning_of_others_too() -> None:
    text = "args: [Qwen/Qwen3-8B, --device=cuda]\n"
    (found,) = findings(Example("yaml", text), rules.Selection(("ARG001",)))
    assert found.message == "vLLM 0.33.0 takes --device for any of --device-ids, --device-memory-utilization"
    assert found.remediation == "Leave it out; the image decides the device."
