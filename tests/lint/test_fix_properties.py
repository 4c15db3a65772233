"""What holds of every fix, in whichever way a file is written: only its own characters change."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import dataclass
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from vllm_phases import fixing
from vllm_phases.rules import all_rules

from tests.lint.examples import judged, written

EXAMPLES = [
    written(example)
    for rule in all_rules()
    if rule.fix
    for example in (*rule.examples("Bad"), *rule.examples("Good"))
]
OTHER = "kind:   Secret # kept\napiVersion: v1\nmetadata:\n      name: 'other'\n"


@dataclass(frozen=True)
class Dress:
    """How a text is written: what does not change what it says."""

    line_end: str
    mark: str
    comments: bool
    neighbours: bool
    final: bool
    form: str

    def on(self, name: str, text: str) -> str:
        if name.endswith(".sh"):
            text = f"#!/bin/bash\n# vllm\n{text}" if self.comments else text
        else:
            text = self._yaml(text)
        text = text if self.final else text.rstrip("\n")
        return self.mark + text.replace("\n", self.line_end)

    def _yaml(self, text: str) -> str:
        if self.form != "as it is":
            return self._dumped(text)
        if self.comments:
            lines = (
                f"{' ' * (len(line) - len(line.lstrip(' ')))}# {number}\n{line}" if _opens(line) else line
                for number, line in enumerate(text.split("\n"))
            )
            text = "\n".join(lines)
        return f"# first\n---\n{OTHER}---\n{text}\n---\n{OTHER}" if self.neighbours else text

    def _dumped(self, text: str) -> str:
        trees = (
            list(yaml.load_all(text, yaml.BaseLoader))
            if self.form == "block"
            else [*yaml.safe_load_all(text)]
        )
        if self.form == "json" and len(trees) == 1:
            return json.dumps(trees[0], indent=2, ensure_ascii=False) + "\n"
        return str(yaml.safe_dump_all(trees, sort_keys=False, allow_unicode=True, width=10_000))


def _opens(line: str) -> bool:
    """Whether a line begins with a key or an item, so that a comment may stand above it."""
    return re.match(r" *(- )?[A-Za-z]+:( |$)", line) is not None


dresses = st.builds(
    Dress,
    line_end=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
    comments=st.booleans(),
    neighbours=st.booleans(),
    final=st.booleans(),
    form=st.sampled_from(["as it is", "as it is", "block", "json"]),
)


def rounds(name: str, text: str) -> list[str]:
    """The text, and what it is after each pass of fixes."""
    contents, texts = {name: text.encode()}, [text]

    def judge() -> Any:
        here = contents[name].decode()
        if here != texts[-1]:
            texts.append(here)
        return judged(here.removeprefix("\ufeff"), name)

    fixing.repair(contents, judge, unsafe=True)
    return texts


def loaded(text: str) -> Any:
    return list(yaml.load_all(text.removeprefix("\ufeff"), yaml.BaseLoader))


@settings(max_examples=150, deadline=None)
@given(example=st.sampled_from(EXAMPLES), dress=dresses)
def test_fixes_keep_everything_else(example: tuple[str, str], dress: Dress) -> None:
    name, plain = example
    text = dress.on(name, plain)
    texts = rounds(name, text)
    after = texts[-1]
    assert after.startswith(dress.mark)
    assert re.findall(r"\r?\n", after) == [dress.line_end] * after.count("\n")
    assert [line for line in text.splitlines() if line.lstrip().startswith("#")] == [
        line for line in after.splitlines() if line.lstrip().startswith("#")
    ]
    assert text.endswith("\n") == after.endswith("\n")
    assert after.count(OTHER.replace("\n", dress.line_end)) == text.count(OTHER.replace("\n", dress.line_end))
    if not name.endswith(".sh"):
        assert len(loaded(after)) == len(loaded(text))


@settings(max_examples=100, deadline=None)
@given(example=st.sampled_from(EXAMPLES), dress=dresses)
def test_each_pass_changes_its_edits_only(example: tuple[str, str], dress: Dress) -> None:
    name, plain = example
    text = dress.on(name, plain)
    fixes = list(fixing.apart(found.fix for found in judged(text.removeprefix("\ufeff"), name) if found.fix))
    edits = sorted({edit for fix in fixes for edit in fix.edits}, key=lambda edit: edit.offset)
    body, rest, at = text.removeprefix("\ufeff"), [], 0
    for edit in edits:
        rest += [body[at : edit.offset], edit.new]
        at = edit.offset + len(edit.old)
        before = body[: edit.offset]
        assert (edit.start.line, edit.start.column) == (
            before.count("\n") + 1,
            len(before) - before.rfind("\n"),
        )
    expected = dress.mark + "".join([*rest, body[at:]])
    made = fixing.edited(text.encode(), edits, name).decode() if edits else text
    assert made == expected


@settings(max_examples=100, deadline=None)
@given(example=st.sampled_from(EXAMPLES), dress=dresses)
def test_fixes_end_and_bring_no_error(example: tuple[str, str], dress: Dress) -> None:
    name, plain = example
    text = dress.on(name, plain)
    after = rounds(name, text)[-1]
    assert rounds(name, after) == [after]
    before = {found.rule_id for found in judged(text.removeprefix("\ufeff"), name)}
    left = judged(after.removeprefix("\ufeff"), name)
    assert not [found for found in left if found.fix]
    hidden = {"RUN009"}  # what is told of a flag only once it is spelt right
    assert {found.rule_id for found in left if found.severity == "error"} - before <= hidden


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """The paths at which two trees are not the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [*one, *(key for key in other if key not in one)]
        return [found for key in keys for found in differences(one.get(key), other.get(key), f"{path}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            found
            for index, pair in enumerate(zip(one, other, strict=True))
            for found in differences(*pair, f"{path}[{index}]")
        ]
    return [] if one == other else [path]


SETTINGS = st.dictionaries(
    st.from_regex(r"[A-Z][A-Z_]{2,8}", fullmatch=True),
    st.one_of(
        st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=12)
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=100, deadline=None)
@given(values=SETTINGS, flow=st.booleans(), line_end=st.sampled_from(["\n", "\r\n"]))
def test_values_of_variables_become_texts(values: dict[str, Any], flow: bool, line_end: str) -> None:
    """Another reader, PyYAML's, sees numbers and truths become the text that was written, and nothing else."""
    entries = [{"name": name, "value": value} for name, value in values.items()]
    dumped = yaml.safe_dump(entries, default_flow_style=flow, allow_unicode=True, width=10_000)
    head = "apiVersion: v1\nkind: Pod\nmetadata: {name: demo}\nspec:\n  containers:\n"
    head += "    - name: vllm\n      image: vllm/vllm-openai:v0.33.0\n      args: [m]\n      env:\n"
    text = (head + textwrap.indent(dumped, "        ")).replace("\n", line_end)
    contents = {"a.yaml": text.encode()}
    fixing.repair(
        contents,
        lambda: [
            found for found in judged(contents["a.yaml"].decode(), "a.yaml") if found.rule_id == "PKG002"
        ],
    )
    after = contents["a.yaml"].decode()
    written_as, read_as = loaded(text), loaded(after)
    assert written_as == read_as
    values_after = [entry["value"] for entry in yaml.safe_load(after)["spec"]["containers"][0]["env"]]
    assert all(isinstance(value, str) for value in values_after)
    assert after.replace('"', "").replace("'", "") == text.replace('"', "").replace("'", "")
