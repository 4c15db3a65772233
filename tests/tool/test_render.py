"""One chart, two renderers: Helm as a library and as a program say the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from vllm_phases import manifests
from vllm_phases.finding import UsageError
from vllm_phases.render import Release, RenderError
from vllm_phases.render.binary import HelmBinary
from vllm_phases.render.embedded import EmbeddedRenderer
from vllm_phases.values import Values, load

from tests.tool.conftest import CONFIG_MAP, ROOT, MakeChart

NOTHING = Values({}, {})
SEES = CONFIG_MAP + "data:\n  sees: {{ %s | toJson | quote }}\n"


def sees(chart: Path, values: Values = NOTHING, release: Release | None = None) -> object:
    """What the template of a chart printed as `sees`."""
    (manifest,) = manifests.parse(EmbeddedRenderer().render(chart, values, release or Release()))
    return manifest.document["data"]["sees"]


class TestEmbedded:
    def test_gives_every_template_by_its_path(self, make_chart: MakeChart) -> None:
        chart = make_chart(templates={"a.yaml": CONFIG_MAP, "NOTES.txt": "Hello {{ .Release.Name }}"})
        rendering = EmbeddedRenderer().render(chart, NOTHING, Release(name="chat"))
        assert rendering.templates["demo/templates/NOTES.txt"] == "Hello chat"
        assert "name: chat" in rendering.templates["demo/templates/a.yaml"]

    def test_hands_the_release_to_the_templates(self, make_chart: MakeChart) -> None:
        chart = make_chart(templates={"a.yaml": SEES % "printf `%s/%s` .Release.Namespace .Release.Name"})
        assert sees(chart, release=Release(name="chat", namespace="ml")) == '"ml/chat"'

    def test_hands_kubernetes_and_api_versions_to_the_templates(self, make_chart: MakeChart) -> None:
        has = '(.Capabilities.APIVersions.Has "inference.networking.k8s.io/v1")'
        chart = make_chart(templates={"a.yaml": SEES % f"list .Capabilities.KubeVersion.Version {has}"})
        release = Release(kube_version="1.31.2", api_versions=("inference.networking.k8s.io/v1",))
        assert sees(chart, release=release) == '["v1.31.2",true]'

    def test_null_deletes_a_default(self, make_chart: MakeChart) -> None:
        chart = make_chart(values="m: {a: 1, b: 2}", templates={"a.yaml": SEES % ".Values"})
        assert sees(chart, load([], ["m.a=null"])) == '{"m":{"b":2}}'

    def test_forgets_nothing_between_renderings(self, make_chart: MakeChart) -> None:
        """The library drops a disabled dependency from the chart it has loaded, for good."""
        renderer, chart = EmbeddedRenderer(), parent(make_chart)
        off, on = load([], ["sub.enabled=false"]), load([], ["sub.enabled=true"])
        assert [len(renderer.render(chart, values, Release()).templates) for values in (on, off, on)] == [
            1,
            0,
            1,
        ]

    def test_collects_helms_warnings(self, make_chart: MakeChart, capfd: pytest.CaptureFixture[str]) -> None:
        rendering = EmbeddedRenderer().render(parent(make_chart), load([], ["sub.enabled=maybe"]), Release())
        assert rendering.warnings == ("returned non-bool value path=sub.enabled chart=sub",)
        assert capfd.readouterr() == ("", "")

    def test_reads_a_packaged_chart(self, make_chart: MakeChart) -> None:
        from helm_python.chart import package

        archive = Path(package(make_chart(templates={"a.yaml": SEES % ".Chart.Version"}), destination="."))
        assert sees(archive) == '"0.1.0"'


def parent(make_chart: MakeChart) -> Path:
    """A chart whose only template is in its dependency `sub`, linked as in this repository."""
    make_chart("sub")
    chart = make_chart(
        "parent",
        templates={"_nothing.tpl": ""},
        dependencies=[{"name": "sub", "version": "*", "condition": "sub.enabled"}],
    )
    (chart / "charts").mkdir()
    (chart / "charts/sub").symlink_to("../../sub")
    return chart


class TestRefusals:
    @pytest.mark.parametrize(
        ("template", "message", "place"),
        [
            ('{{ fail "a: not 1\\nset 2" }}', "a: not 1\nset 2", "demo/templates/a.yaml:1:3: "),
            ('\n  {{ required "set a" .Values.a }}', "set a", "demo/templates/a.yaml:2:5: "),
            ("{{ if }}", "missing value for if", "demo/templates/a.yaml:1:1: "),
            (
                '{{ define "x" }}\n{{ .Values.a.b.c }}\n{{ end }}{{ include "x" . }}',
                "<.Values.a.b.c>: nil pointer evaluating interface {}.b",
                "demo/templates/a.yaml:2:10: ",
            ),
        ],
        ids=["fail", "required", "syntax", "nil in an include"],
    )
    def test_of_a_template_are_only_the_cause(
        self, make_chart: MakeChart, template: str, message: str, place: str
    ) -> None:
        error = refusal(make_chart(templates={"a.yaml": template}))
        assert (str(error), error.place) == (message, place)

    def test_of_an_unsuitable_kubernetes(self, make_chart: MakeChart) -> None:
        chart = make_chart(kubeVersion=">=1.29.0-0")
        error = refusal(chart, Release(kube_version="1.28.3"))
        assert str(error) == (
            "chart requires kubeVersion: >=1.29.0-0 which is incompatible with Kubernetes v1.28.3"
        )
        assert EmbeddedRenderer().render(chart, NOTHING, Release(kube_version="v1.29.0-eks")).templates

    def test_of_a_missing_dependency(self, make_chart: MakeChart) -> None:
        error = refusal(make_chart(dependencies=[{"name": "sub", "version": "*"}]))
        assert str(error) == "found in Chart.yaml, but missing in charts/ directory: sub"

    def test_of_a_folder_that_is_no_chart(self, workplace: Path) -> None:
        assert str(refusal(workplace)) == "Chart.yaml file is missing"


def refusal(chart: Path, release: Release | None = None) -> RenderError:
    with pytest.raises(RenderError) as caught:
        EmbeddedRenderer().render(chart, NOTHING, release or Release())
    return caught.value


@pytest.mark.cluster
class TestBothRenderers:
    @pytest.mark.parametrize(
        "values", sorted((ROOT / "values").glob("phase*.yaml")), ids=lambda path: path.stem
    )
    def test_give_the_same_objects(self, helm: Path, values: Path) -> None:
        release, loaded = Release("demo", "ml", "1.33.0"), load([values])
        chart = ROOT / "charts/vllm-stack"
        as_library, as_program = (
            {(found.template, found.id): found.document for found in manifests.parse(rendering)}
            for renderer in (EmbeddedRenderer(), HelmBinary(str(helm)))
            for rendering in [renderer.render(chart, loaded, release)]
        )
        assert as_library == as_program
        assert len(as_library) >= 5

    @pytest.mark.parametrize(
        "template",
        [
            '{{ fail "a: not 1\\nset 2" }}',
            "{{ if }}",
            '{{ define "x" }}\n{{ .Values.a.b.c }}\n{{ end }}{{ include "x" . }}',
            "a: [1",
            "- a",
        ],
    )
    def test_refuse_alike(self, make_chart: MakeChart, helm: Path, template: str) -> None:
        chart = make_chart(templates={"a.yaml": template})
        refusals = []
        for renderer in (EmbeddedRenderer(), HelmBinary(str(helm))):
            with pytest.raises(RenderError) as caught:
                manifests.parse(renderer.render(chart, NOTHING, Release()))
            refusals.append((str(caught.value), caught.value.place))
        assert refusals[0] == refusals[1]

    def test_refuse_an_unsuitable_kubernetes_alike(self, make_chart: MakeChart, helm: Path) -> None:
        chart, release = make_chart(kubeVersion=">=1.29.0-0"), Release(kube_version="1.28.3")
        with pytest.raises(RenderError) as caught:
            HelmBinary(str(helm)).render(chart, NOTHING, release)
        assert str(caught.value) == str(refusal(chart, release))

    def test_pass_on_warnings_and_nothing_else(self, make_chart: MakeChart, helm: Path) -> None:
        chart, renderer = parent(make_chart), HelmBinary(str(helm))
        assert renderer.render(chart, NOTHING, Release()).warnings == ()
        (warning,) = renderer.render(chart, load([], ["sub.enabled=maybe"]), Release()).warnings
        assert "returned non-bool value" in warning

    def test_keep_the_documents_of_one_template_apart(self, make_chart: MakeChart, helm: Path) -> None:
        chart = make_chart(
            templates={"a.yaml": f"{CONFIG_MAP}---\n{CONFIG_MAP.replace('ConfigMap', 'Secret')}"}
        )
        rendering = HelmBinary(str(helm)).render(chart, NOTHING, Release())
        assert {found.kind for found in manifests.parse(rendering)} == {"ConfigMap", "Secret"}


def test_a_missing_program_is_a_usage_error(make_chart: MakeChart) -> None:
    with pytest.raises(UsageError) as caught:
        HelmBinary("no-such-helm").render(make_chart(), NOTHING, Release())
    assert str(caught.value) == "cannot run helm at no-such-helm: No such file or directory"
