"""The documentation of rules as Markdown, out of their docstrings."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vllm_phases.rules.registry import Rule

_TOPICS = {
    "ARG": "arguments of vLLM",
    "ENV": "environment variables",
    "KV": "KV transfer and prefill/decode pairs",
    "LINT": "the linter itself",
    "LLMD": "llm-d: sidecar, endpoint picker, InferencePool, routes",
    "NET": "ports, Services and policies",
    "OBJ": "objects as an API server takes them",
    "OPS": "scaling, monitoring and updates",
    "PKG": "packaging and files",
    "RUN": "start, probes, drain, memory and volumes",
    "SEC": "security",
    "SHR": "GPUs and how they are shared",
}


def page(rule: Rule) -> str:
    """One rule: its names, what it is about, and its documentation."""
    return f"# {rule.id} {rule.name}\n\n{_facts(rule)}\n\n{rule.markdown}"


def book(rules: Sequence[Rule]) -> str:
    """Every rule, with a table in front."""
    return "\n".join(_lines(rules)).rstrip() + "\n"


def _lines(rules: Sequence[Rule]) -> Iterator[str]:
    yield "# Rules of `vllm-phases lint`\n"
    yield "Made by `vllm-phases rules --write docs/rules.md` from the docstrings of the rules; do not edit.\n"
    yield "A rule with *fix* is put right by `lint --fix`, where the place in the file is certain.\n"
    yield "| rule | name | severity | | what is wrong |\n|---|---|---|---|---|"
    for rule in rules:
        summary = rule.summary.replace("|", "\\|")
        link = f"[{rule.id}](#{rule.id.lower()}-{rule.name})"
        yield f"| {link} | {rule.name} | {rule.severity.value} | {'fix' if rule.fix else ''} | {summary} |"
    for topic, of_topic in groupby(rules, key=lambda rule: rule.topic):
        yield f"\n## {topic}: {_TOPICS.get(topic, topic)}\n"
        for rule in of_topic:
            yield f"### {rule.id} {rule.name}\n\n{_facts(rule)}\n\n{rule.markdown}\n"


def _facts(rule: Rule) -> str:
    """Severity, the vLLM releases that it looks at, and what --fix does about it."""
    since = f"from vLLM {rule.since}" if rule.since else ""
    until = f"before vLLM {rule.until}" if rule.until else ""
    window = " and ".join(filter(None, (since, until)))
    if not window and rule.versioned:
        window = "needs the version of the engine"
    fixable = f"\n\nFix: {rule.fix}" if rule.fix else ""
    return f"*{rule.severity.value}*" + (f", {window}" if window else "") + fixable
