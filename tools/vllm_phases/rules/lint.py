"""LINT: what the linter says of its own work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases import catalogue
from vllm_phases.finding import Severity
from vllm_phases.model import Release
from vllm_phases.rules.registry import Context, Elsewhere, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule("LINT001", "unreadable", Severity.ERROR, scope=Elsewhere)
def unreadable(subject: Elsewhere, context: Context) -> Iterator[Problem]:
    """A document that cannot be read, or is nothing the linter knows; the others are judged all the same.

    Why:
        kubectl and docker compose refuse broken YAML. A template is told as a warning: it must be rendered
        before it says anything. In a folder, only what looks like a manifest is told.

    Bad:
        ```text
        kind: Deployment
        spec: {replicas: {{ .Values.replicas }}}
        ```

    Good:
        ```text
        kind: Deployment
        spec: {replicas: 2}
        ```

    References:
        - sources/files.py
    """
    return iter(())


@rule("LINT002", "useless-suppression", Severity.WARNING, scope=Elsewhere)
def useless_suppression(subject: Elsewhere, context: Context) -> Iterator[Problem]:
    """A suppression that suppresses nothing, or gives no reason.

    Why:
        What it once excused is gone, or never was there: it would hide the next fault on its line. A
        suppression without a reason is not honoured.

    Bad:
        ```text
        env:
          - {name: VLLM_LOGGING_LEVEL, value: INFO}  # vllm-phases: ignore[ENV001] no longer needed
        ```

    Good:
        ```text
        env:
          - {name: VLLM_OURS, value: "1"}  # vllm-phases: ignore[ENV001] read by our plugin
        ```

    References:
        - docs/lint.md, suppressions
    """
    return iter(())


@rule("LINT004", "rule-failed", Severity.ERROR, scope=Elsewhere)
def rule_failed(subject: Elsewhere, context: Context) -> Iterator[Problem]:
    """A rule that failed. The run ends with exit code 4, and the other rules have done their work.

    Why:
        It is a fault of vllm-phases and of nothing in the files, but what the rule would have found is not
        known.

    Bad:
        ```text
        error: rule KV001 failed: KeyError: 'kv_connector'
        ```

    Good:
        ```text
        no findings
        ```

    References:
        - rules/__init__.py
    """
    return iter(())


@rule("LINT003", "unknown-version", Severity.NOTE, scope=Release, whole=True)
def unknown_version(release: Release, context: Context) -> Iterator[Problem]:
    """Engines whose vLLM version nothing tells, so that rules tied to versions pass them over.

    Why:
        Flags, variables and connectors belong to releases. An image by digest, or of another name than the
        official ones, does not say which release it holds.

    Bad:
        ```yaml
        image: registry.example.net/serving/engine:stable
        command: [vllm, serve]
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.33.0
        ```

    References:
        - docs/lint.md, the version of an engine
    """
    unknown = [engine for engine in release.engines if engine.release is None]
    if unknown:
        count = f"{len(unknown)} of {len(release.engines)} engines"
        old = unknown[0].version
        reason = f"vLLM {old.text} is none of the catalogue's" if old else "nothing tells the vLLM version"
        known = f"{catalogue.versions()[0]} to {catalogue.versions()[-1]}"
        message = f"{reason}, here and in all for {count}: rules tied to a version were skipped"
        fix = f"Give --vllm-version, or the annotation vllm-phases.dev/vllm-version ({known} are known)."
        yield Problem(unknown[0].container.image, message, fix)
