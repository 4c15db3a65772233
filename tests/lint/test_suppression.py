"""Findings that the user excuses, in comments and in annotations."""

from __future__ import annotations

import pytest
from vllm_phases import rules, sources, suppression
from vllm_phases.model import Document, Release

from tests.lint.examples import KUBE_VERSION

SELECTED = rules.Selection(("ARG001", "ARG005", "ENV001", "LINT002"))
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: demo
  annotations: {ANNOTATIONS}
spec:
  containers:
    - name: vllm
      image: vllm/vllm-openai:v0.33.0
      ABOVE
      args: [m, --qq]  BESIDE
"""


def told(above: str = "# x", beside: str = "", annotations: str = "") -> list[tuple[str, int, str]]:
    text = POD.replace("ABOVE", above).replace("BESIDE", beside).replace("ANNOTATIONS", annotations)
    documents = tuple(found for found in sources.read_text(text, "a.yaml") if isinstance(found, Document))
    release = Release(documents)
    found = rules.run(rules.Context(release, KUBE_VERSION), SELECTED)
    excuses = [*suppression.in_comments(documents[0]), *suppression.in_annotations(release)]
    kept = suppression.apply(
        found, excuses, [rule_id for rule_id in rules.known_ids() if rule_id in SELECTED]
    )
    return [(item.rule_id, item.location.line if item.location else 0, item.message) for item in kept]


UNKNOWN = ("ARG001", 11, "vLLM 0.33.0 has no flag --qq; did you mean -q?")


def test_without_any_the_finding_stays() -> None:
    assert told() == [UNKNOWN]


@pytest.mark.parametrize(
    "written",
    [
        {"beside": "# vllm-phases: ignore[ARG001] ours"},
        {"above": "# vllm-phases: ignore[ARG001] ours"},
        {"above": "# vllm-phases: ignore[ARG001]: ours\n\n      # more"},
        {"annotations": "ignore.vllm-phases.dev/ARG001: ours"},
    ],
    ids=["beside", "above", "above, with more between", "annotation"],
)
def test_with_a_reason_it_goes(written: dict[str, str]) -> None:
    assert told(**written) == []


def test_two_rules_in_one_comment() -> None:
    assert told(beside="# vllm-phases: ignore[ARG001, ENV001] ours") == [
        ("LINT002", 11, "ENV001 finds nothing here")
    ]


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("ignore[ARG001]", "ignore ARG001: no reason is given, so it is not honoured"),
        ("ignore[ARG005] ours", "ARG005 finds nothing here"),
        ("ignore[AGR001] ours", "AGR001 is no rule; did you mean ARG001?"),
        ("ignore ours", "names no rule"),
        ("ignore[LINT002] ours", "LINT002 cannot be suppressed"),
    ],
)
def test_what_does_not_help_is_told(comment: str, message: str) -> None:
    assert told(beside=f"# vllm-phases: {comment}") == [UNKNOWN, ("LINT002", 11, message)]


def test_an_annotation_that_does_not_help_is_told_at_its_line() -> None:
    assert told(annotations="ignore.vllm-phases.dev/ENV001: ours") == [
        UNKNOWN,
        ("LINT002", 5, "ENV001 finds nothing here"),
    ]


def test_a_rule_that_was_not_run_may_have_its_use() -> None:
    assert told(beside="# vllm-phases: ignore[ARG003] ours") == [UNKNOWN]


def test_an_annotation_of_the_pods_counts_for_the_whole_object() -> None:
    text = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: demo}
spec:
  template:
    metadata: {annotations: {ignore.vllm-phases.dev/ARG001: ours}}
    spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [m, --qq]}]}
"""
    documents = tuple(found for found in sources.read_text(text, "a.yaml") if isinstance(found, Document))
    release = Release(documents)
    found = rules.run(rules.Context(release, KUBE_VERSION), SELECTED)
    excuses = list(suppression.in_annotations(release))
    assert [excuse.object for excuse in excuses] == ["Deployment/demo"]
    assert list(suppression.apply(found, excuses, rules.known_ids())) == []
