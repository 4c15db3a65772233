"""The check of one set of values: schema, then rendering, then the rules, those of objects among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vllm_phases import catalogue, manifests, model, rules, suppression
from vllm_phases.finding import Finding, Location, Severity, reading_order
from vllm_phases.render import RenderError
from vllm_phases.rules.origin import in_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from vllm_phases.manifests import Manifest
    from vllm_phases.render import Release, Renderer
    from vllm_phases.schema.validate import ValuesSchema
    from vllm_phases.suppression import Suppression
    from vllm_phases.values import Values


_CHART_REFUSAL = "These values cannot work:"  # how vllm-common.fail begins


@dataclass(frozen=True)
class ValuesSet:
    """Values files that make one release together, as `helm install -f … -f …` takes them."""

    files: tuple[Path, ...]
    values: Values

    @property
    def name(self) -> str:
        """The files as the user named them; the chart's defaults alone have no file."""
        return " + ".join(map(str, self.files)) or "chart defaults"


@dataclass(frozen=True)
class Result:
    """What came of one set. rendered is False when Helm refused; objects and engines then count nothing.

    engine_version is `global.vllm.version`, "" where the chart has none; engines counts engine pods.
    """

    values_set: ValuesSet
    findings: tuple[Finding, ...]
    rendered: bool = True
    engine_version: str = ""
    objects: int = 0
    engines: int = 0

    def count(self, severity: Severity) -> int:
        """How many findings have this severity."""
        return sum(finding.severity is severity for finding in self.findings)


@dataclass(frozen=True)
class Checker:
    """Checks sets of values against one chart; the chart's schema is read once for all of them.

    selection  which rules of the linter run
    """

    chart: Path
    schema: ValuesSchema
    renderer: Renderer
    release: Release
    selection: rules.Selection = rules.EVERY_RULE

    def refused(self, values: Values) -> tuple[Finding, ...]:
        """What the chart's schema has against the values."""
        return self.schema.findings(values, self.schema.coalesce(values))

    def check(self, values_set: ValuesSet) -> Result:
        """Stop at the schema's errors: what a chart renders from refused values tells nothing new.

        UsageError when the catalogue does not reach back to the engine version.
        """
        merged = self.schema.coalesce(values_set.values)
        version = _engine_version(merged)
        if refused := self.schema.findings(values_set.values, merged):
            return Result(values_set, refused, engine_version=version)
        try:
            rendering = self.renderer.render(self.chart, values_set.values, self.release)
            objects = manifests.parse(rendering)
        except RenderError as error:
            if refused := tuple(_refused(error, values_set.values)):
                return Result(values_set, refused, engine_version=version)
            return Result(values_set, (_unrendered(error),), rendered=False, engine_version=version)
        if version:
            catalogue.load(version)  # UsageError where the catalogue does not reach back to it
        deployed = _model(objects, version)
        findings = (
            *(_warning(text) for text in rendering.warnings),
            *self._findings(deployed, values_set.values),
        )
        excuses = (*_excuses(values_set.files), *suppression.in_annotations(deployed))
        ran = [rule_id for rule_id in rules.known_ids() if rule_id in self.selection]
        found = sorted(suppression.apply(findings, excuses, ran), key=reading_order)
        engines = sum(engine.pod.replicas or 0 for engine in deployed.engines)
        return Result(values_set, tuple(found), True, version, len(objects), engines)

    def _findings(self, deployed: model.Release, values: Values) -> Iterator[Finding]:
        from vllm_phases.rules.objects import unchecked

        context = rules.Context(deployed, self.release.kube_version)
        yield from (finding for finding in unchecked(context) if finding.rule_id in self.selection)
        yield from rules.run(context, self.selection, in_values(values))


def _engine_version(merged: Mapping[str, Any]) -> str:
    node: Any = merged
    for key in ("global", "vllm", "version"):
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, str) else ""


def _model(objects: tuple[Manifest, ...], version: str) -> model.Release:
    documents = (
        model.Document(manifest.template, "kubernetes", manifest.document, line=manifest.line)
        for manifest in objects
    )
    return model.Release(tuple(documents), version or None)


def _excuses(files: tuple[Path, ...]) -> Iterator[Suppression]:
    """The suppressions in the comments of values files."""
    for file in files:
        text = file.read_text(encoding="utf-8-sig")
        yield from suppression.in_comments(model.Document(str(file), "kubernetes", None, text))


def _refused(error: RenderError, values: Values) -> Iterator[Finding]:
    """A finding for each value that our charts refuse; they list them as "- path: why and what to set"."""
    heading, *lines = str(error).splitlines()
    for line in lines if heading == _CHART_REFUSAL else ():
        path, _, message = line.removeprefix("- ").partition(": ")
        place = values.origin(tuple(path.split("."))) or _place(error)
        yield Finding(
            "VAL004", "refused-value", Severity.ERROR, f"{path}: {message}", path=path, location=place
        )


def _warning(text: str) -> Finding:
    return Finding("HELM001", "helm-warning", Severity.WARNING, f"Helm warns: {text}")


def _unrendered(error: RenderError) -> Finding:
    message = f"Helm cannot render: {error}"
    return Finding("HELM002", "helm-error", Severity.ERROR, message, location=_place(error))


def _place(error: RenderError) -> Location | None:
    return Location(error.template, error.line, error.column) if error.template else None
