"""Values files merge as Helm merges them, and every key knows the line that set it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helm_python import parse_set_string
from hypothesis import given, settings, strategies
from vllm_phases import yaml_document
from vllm_phases.finding import Location, UsageError
from vllm_phases.render import Release
from vllm_phases.render.binary import HelmBinary
from vllm_phases.values import Values, load

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.tool.conftest import MakeChart

pytestmark = pytest.mark.usefixtures("workplace")


def write(name: str, text: str) -> Path:
    Path(name).write_text(text)
    return Path(name)


def place(values: Values, *path: str | int) -> str:
    return str(values.origin(path))


class TestMerging:
    def test_maps_merge_and_the_later_file_wins(self) -> None:
        values = load([write("a.yaml", "m: {x: 1, k: 2}"), write("b.yaml", "m: {k: 3, z: 4}")])
        assert values.tree == {"m": {"x": 1, "k": 3, "z": 4}}

    def test_lists_replace(self) -> None:
        assert load([write("a.yaml", "l: [1, 2]"), write("b.yaml", "l: [3]")]).tree == {"l": [3]}

    def test_null_stays_so_that_helm_can_delete_the_default(self) -> None:
        assert load([write("a.yaml", "m: {x: 1}"), write("b.yaml", "m: {x: null}")]).tree == {
            "m": {"x": None}
        }

    def test_a_scalar_replaces_a_map(self) -> None:
        assert load([write("a.yaml", "m: {x: 1}"), write("b.yaml", "m: 2")]).tree == {"m": 2}

    def test_no_file_and_an_empty_file_are_no_values(self) -> None:
        assert load([]).tree == {}
        assert load([write("a.yaml", "# nothing\n")]).tree == {}

    def test_scalars_are_what_helm_takes_them_for(self) -> None:
        text = "octal: 0123\nfloat: 1e3\nyes: 1\ndate: 2030-01-01\nquoted: '0123'\n"
        tree = load([write("a.yaml", text)]).tree
        assert tree == {"octal": 83, "float": 1000, "true": 1, "date": "2030-01-01", "quoted": "0123"}

    def test_merge_keys_and_aliases(self) -> None:
        values = load([write("a.yaml", "a: &a {x: 1, k: 2}\nb:\n  <<: *a\n  k: 3\nc: *a\n")])
        assert values.tree == {"a": {"x": 1, "k": 2}, "b": {"x": 1, "k": 3}, "c": {"x": 1, "k": 2}}
        assert place(values, "b", "x") == "a.yaml:1:8"
        assert place(values, "b", "k") == "a.yaml:4:3"


class TestSet:
    @pytest.mark.parametrize(
        ("expression", "tree"),
        [
            ("a=1", {"a": 1}),
            ("a=1048576", {"a": 1048576}),
            ("a=1.5", {"a": "1.5"}),  # Helm reads no float here
            ("a=true,b=null", {"a": True, "b": None}),
            ("a={x,y}", {"a": ["x", "y"]}),
            ("a[1].b=x", {"a": [None, {"b": "x"}]}),
            (r"a\.b=1", {"a.b": 1}),
            (r"a=x\,y", {"a": "x,y"}),
            ("a=b=c", {"a": "b=c"}),
            ("a=", {"a": ""}),
        ],
    )
    def test_reads_what_helm_reads(self, expression: str, tree: object) -> None:
        assert load([], [expression]).tree == tree

    def test_reaches_into_the_lists_of_a_file(self) -> None:
        file = write("a.yaml", "l:\n  - {x: 1, k: 2}\n  - 3\n")
        values = load([file], ["l[0].x=7,l[3]=9"])
        assert values.tree == {"l": [{"x": 7, "k": 2}, 3, None, 9]}
        assert place(values, "l", 0, "k") == "a.yaml:2:12"
        assert values.origin(("l", 0, "x")) == Location("--set l[0].x=7,l[3]=9", 1, 1)

    def test_the_last_expression_wins(self) -> None:
        values = load([], ["a.b=1", "a.b=2"])
        assert values.tree == {"a": {"b": 2}}
        assert values.origins[("a", "b")].file == "--set a.b=2"
        assert values.origins[("a",)].file == "--set a.b=1"

    @pytest.mark.parametrize(
        ("expression", "message"),
        [
            ("a", '--set a: key "a" has no value'),
            ("=1", "--set =1: sets nothing"),
            ("a={1", "--set a={1: list must terminate with '}'"),
            ("a=1,b[", "--set a=1,b[: is not key=value"),
            ("m.x.y=1", "--set m.x.y=1: m.x is not a map"),
            ("m[0]=1", "--set m[0]=1: m is not a list"),
        ],
    )
    def test_refuses_in_one_line(self, expression: str, message: str) -> None:
        with pytest.raises(UsageError) as caught:
            load([write("a.yaml", "m: {x: 1}")], [expression])
        assert str(caught.value) == message


class TestAnyInput:
    """Whatever is given is read as Helm reads it, or refused in one line."""

    @settings(derandomize=True, max_examples=300, deadline=None)
    @given(strategies.text(alphabet="ab.[]{}=,\\01 ", max_size=20))
    def test_of_set(self, expression: str) -> None:
        tree, refusal = attempt(lambda: load([], [expression]).tree)
        assert refusal or tree == parse_set_string(expression)

    @settings(derandomize=True, max_examples=300, deadline=None)
    @given(strategies.text(alphabet="ab:-[]{}&*!?|>'\"%@#,~\n\t 01.<\\é\0", max_size=60))
    def test_of_a_file(self, text: str) -> None:
        tree, refusal = attempt(lambda: yaml_document.parse(text, "v.yaml")[0])
        assert refusal or isinstance(tree, dict)


def attempt(read: Callable[[], object]) -> tuple[object, str]:
    """What was read, or else the one line of its refusal."""
    try:
        return read(), ""
    except UsageError as error:
        (line,) = str(error).splitlines()
        return None, line


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("files", "sets"),
    [
        (["a: 1\nm: {x: 1, l: [1, 2]}", "m: {x: null, l: [3], n: {o: 1}}"], []),
        (["m: {x: 1}", "m: 3", "m: {k: 1}"], []),
        (["l: [{x: 1, k: 2}, 3]"], ["l[0].x=7", "l[2].z=1"]),
        (["m: {x: 1, k: 2}"], ["m.x=null,m.z={a,b}", r"m.a\.b=c\,d", "n.o.p=1.50", "q=0123"]),
        (["n: 1e3\no: 0123\nd: 2030-01-01\nt: on\nbig: 9007199254740993"], ["set=9007199254740992"]),
    ],
)
def test_a_real_helm_merges_alike(
    make_chart: MakeChart, helm: Path, files: list[str], sets: list[str]
) -> None:
    """A template sees the same values from `helm template -f … --set …` and from our merge in one file."""
    sees = "kind: K\nv: {{ toJson .Values | quote }}"
    chart = make_chart(values="m: {x: 0, d: 1}\n", templates={"a.yaml": sees})
    paths = [write(f"{number}.yaml", text) for number, text in enumerate(files)]
    words = [f"--values={path}" for path in paths] + [f"--set={each}" for each in sets]
    native = subprocess.run(
        [helm, "template", "demo", chart, *words], capture_output=True, text=True, check=True
    )
    ours = HelmBinary(str(helm)).render(chart, load(paths, sets), Release())
    assert "".join(ours.templates.values()).strip() in native.stdout


class TestOrigins:
    def test_every_key_and_item_has_a_line_and_column(self) -> None:
        values = load([write("a.yaml", "a:\n  b: 1\n  l:\n    - x\n    - {k: 2}\n")])
        assert {path: str(where) for path, where in values.origins.items()} == {
            ("a",): "a.yaml:1:1",
            ("a", "b"): "a.yaml:2:3",
            ("a", "l"): "a.yaml:3:3",
            ("a", "l", 0): "a.yaml:4:7",
            ("a", "l", 1): "a.yaml:5:7",
            ("a", "l", 1, "k"): "a.yaml:5:8",
        }

    def test_the_last_file_that_set_a_key_is_its_origin(self) -> None:
        values = load([write("a.yaml", "m: {x: 1, k: 2}"), write("b.yaml", "m: {k: 3}")])
        assert place(values, "m", "x") == "a.yaml:1:5"
        assert place(values, "m", "k") == "b.yaml:1:5"

    def test_what_was_replaced_is_forgotten(self) -> None:
        values = load([write("a.yaml", "m: {x: {k: 1}}"), write("b.yaml", "m: {x: 2}")])
        assert ("m", "x", "k") not in values.origins

    def test_an_unknown_path_has_the_origin_of_its_nearest_parent(self) -> None:
        values = load([write("a.yaml", "m:\n  x: 1\n")])
        assert place(values, "m", "missing", "deeper") == "a.yaml:1:1"
        assert values.origin(("other",)) is None


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{after}: &{after} [{','.join(['*' + before] * 9)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a: 1\nb:\n  c: 2\n  c: 3\n", "v.yaml:4:3: key 'c' is given twice, first on line 3"),
            ("a: 1\n---\nb: 2\n", "v.yaml:2:1: a second YAML document starts here; a values file holds one"),
            ("- 1\n", "v.yaml:1:1: must be a mapping of keys, not a list"),
            ("just text\n", "v.yaml:1:1: must be a mapping of keys, not a single value"),
            ("a: [1\nb: 2\n", "v.yaml:2:2: did not find expected ',' or ']'"),
            ("a: *nowhere\n", "v.yaml:1:4: found undefined alias"),
            (
                "a: 1\0\n",
                "v.yaml: unacceptable character #x0000: control characters are not allowed "
                'in "<unicode string>", position 4',
            ),
            (BOMB, "v.yaml: document contains excessive aliasing"),
            ("a: &a [*a]\n", "v.yaml: anchor 'a' value contains itself"),
            ("a: " + "[" * 2000 + "]" * 2000, "v.yaml:1:1003: exceeded maximum nesting depth"),
        ],
        ids=lambda value: value[:24] if value.startswith("v.yaml") else "",
    )
    def test_in_one_line_with_the_place(self, text: str, message: str) -> None:
        with pytest.raises(UsageError) as caught:
            load([write("v.yaml", text)])
        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda path: None, "v.yaml: no such values file"),
            (lambda path: path.mkdir(), "v.yaml: is a folder, not a values file"),
            (lambda path: path.write_bytes(b"a: \xff"), "v.yaml: not UTF-8 text (byte 3)"),
        ],
        ids=["missing", "folder", "binary"],
    )
    def test_of_what_is_no_values_file(self, make: Callable[[Path], object], message: str) -> None:
        make(Path("v.yaml"))
        with pytest.raises(UsageError) as caught:
            load([Path("v.yaml")])
        assert str(caught.value) == message
