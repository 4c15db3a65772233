"""A finding about a key of a JSON argument points at that key, however the argument is written."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from vllm_phases import rules, sources, suppression
from vllm_phases.model import Document, Release
from vllm_phases.sources import positions, shell

if TYPE_CHECKING:
    from vllm_phases.finding import Finding

KEY = "kv_rnak"
CONFIG = '{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_rnak":0}'
SPREAD = '{\n  "kv_connector": "NixlConnector",\n  "kv_role": "kv_both",\n  "kv_rnak": 0\n}'
HEAD = """\
apiVersion: v1
kind: Pod
metadata: {name: demo}
spec:
  containers:
    - name: vllm
      image: vllm/vllm-openai:v0.33.0
"""


def found(text: str, name: str) -> Finding:
    documents = tuple(it for it in sources.read_text(text, name) if isinstance(it, Document))
    (finding,) = rules.run(rules.Context(Release(documents, "0.33.0"), "1.34.0"), rules.Selection(("KV002",)))
    return finding


def place(text: str, before: str) -> tuple[int, int]:
    """Line and column of the key with what stands before it."""
    at = text.index(before + KEY)
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def indented(text: str, by: int) -> str:
    return textwrap.indent(text, by * " ")


def escaped(text: str) -> str:
    return text.replace('"', '\\"')


FLAG = "--kv-transfer-config"
ARGS = {
    "plain": f"      args: \n        - m\n        - {FLAG}={CONFIG}\n",
    "plain over two lines": f"      args:\n        - m\n        - {FLAG}={CONFIG.replace(',', ',' + chr(10) + '          ', 1)}\n",
    "single quotes": f"      args: [m, '{FLAG}={CONFIG}']\n",
    "single quotes, a value of its own": f"      args: [m, {FLAG}, '{CONFIG}']\n",
    "single quotes with one inside": f"      args: [m, {FLAG}, '{CONFIG.replace('NixlConnector', chr(39) * 2 + 'x')}']\n",
    "double quotes": f'      args: [m, {FLAG}, "{escaped(CONFIG)}"]\n',
    "double quotes over two lines": f'      args: [m, {FLAG}, "{escaped(CONFIG).replace(",", "," + chr(92) + chr(10) + "         ", 1)}"]\n',
    "a literal block": f"      args:\n        - m\n        - {FLAG}\n        - |\n{indented(SPREAD, 10)}\n",
    "a folded block": f"      args:\n        - m\n        - {FLAG}\n        - >-\n{indented(SPREAD, 10)}\n",
    "a script": f"      command:\n        - bash\n        - -c\n        - |\n          set -e\n          exec vllm serve m \\\n            {FLAG} '{CONFIG}'\n",
    "a script with JSON over lines": f"      command:\n        - bash\n        - -c\n        - |\n          vllm serve m {FLAG} '{indented(SPREAD, 10).lstrip()}'\n",
    "a script with double quotes": f'      command:\n        - bash\n        - -c\n        - |\n          vllm serve m {FLAG} "{escaped(CONFIG)}"\n',
    "a script in a folded block": f"      command:\n        - bash\n        - -c\n        - >\n          vllm serve m\n          {FLAG} '{CONFIG}'\n",
    "a script in double quotes": f"      command: [bash, -c, \"vllm serve m {FLAG} '{escaped(CONFIG)}'\"]\n",
    "a script in single quotes": f"      command: [bash, -c, 'vllm serve m {FLAG}=''{CONFIG}''']\n",
}


@pytest.mark.parametrize("style", ARGS)
def test_yaml(style: str) -> None:
    text = HEAD + ARGS[style]
    quote = '\\"' if f'\\"{KEY}' in text else '"'
    location = found(text, "d.yaml").location
    assert location is not None
    assert (location.line, location.column) == place(text, quote)


@pytest.mark.parametrize(
    "text",
    [
        f"vllm serve m {FLAG} '{CONFIG}'\n",
        f"# first\nvllm serve m \\\n  {FLAG}='{CONFIG}' --port 8000\n",
        f'vllm serve m {FLAG} "{escaped(CONFIG)}"\n',
        f"vllm serve m {FLAG} '{SPREAD}'\n",
        f"ARGS=(m {FLAG} '{CONFIG}')\nvllm serve \"${{ARGS[@]}}\"\n",
        f"bash <<'EOF'\nvllm serve m {FLAG} '{CONFIG}'\nEOF\n",
        f"docker run vllm/vllm-openai:v0.33.0 m {FLAG} '{CONFIG}'\n",
    ],
)
def test_shell(text: str) -> None:
    location = found(text, "run.sh").location
    assert location is not None
    assert (location.line, location.column) == place(text, '\\"' if f'\\"{KEY}' in text else '"')


@pytest.mark.parametrize(
    "command",
    [
        f"    command: m {FLAG} '{CONFIG}'\n",
        f"    command: [m, {FLAG}, '{CONFIG}']\n",
        f"    command: >\n      m\n      {FLAG} '{CONFIG}'\n",
    ],
)
def test_compose(command: str) -> None:
    text = f"services:\n  engine:\n    image: vllm/vllm-openai:v0.33.0\n{command}"
    location = found(text, "compose.yaml").location
    assert location is not None
    assert (location.line, location.column) == place(text, '"')


def test_the_file_of_config() -> None:
    text = (
        HEAD
        + "      args: [m, --config, /c/c.yaml]\n      volumeMounts: [{name: c, mountPath: /c}]\n"
        + "  volumes: [{name: c, configMap: {name: c}}]\n---\napiVersion: v1\nkind: ConfigMap\n"
        + "metadata: {name: c}\ndata:\n  c.yaml: |\n    kv-transfer-config:\n      kv_role: kv_both\n"
        + "      kv_connector: NixlConnector\n      kv_rnak: 0\n"
    )
    location = found(text, "d.yaml").location
    assert location is not None
    assert (location.line, location.column) == place(text, "")


@pytest.mark.parametrize(
    ("script", "line"),
    [
        (
            f"C='{CONFIG}'\nvllm serve m \\\n  {FLAG} \"$C\"\n",
            3,
        ),  # what a variable holds has no place of its own
        (f"X=0\nvllm serve m {FLAG} '{CONFIG[:-2]}'\"$X}}\"\n", 2),
        (f"vllm serve m {FLAG}.kv_role kv_both {FLAG}.kv_rnak 0\n", 1),
    ],
)
def test_where_it_cannot_be_known_it_is_the_option(script: str, line: int) -> None:
    location = found(script, "run.sh").location
    assert location is not None
    assert location.line == line
    assert script.splitlines()[line - 1][location.column - 1 :].startswith(FLAG)


def test_a_comment_before_the_argument_suppresses_what_stands_lines_below() -> None:
    text = HEAD + (
        f"      args:\n        - m\n        # vllm-phases: ignore[KV002] ours\n        - |-\n"
        f"          {FLAG}={indented(SPREAD, 10).lstrip()}\n"
    )
    finding = found(text, "d.yaml")
    (document,) = sources.read_text(text, "d.yaml")
    assert isinstance(document, Document)
    excuses = tuple(suppression.in_comments(document))
    assert list(suppression.apply([finding], excuses, {"KV002"})) == []


@given(st.text(st.sampled_from("ab{}\":,\\\n\t 'é"), min_size=1), st.sampled_from(["'", '"', "|", ">", None]))
def test_every_place_holds_its_character(text: str, style: str | None) -> None:
    """Whatever YAML makes of a text, a place that is given is that of the character, or of its escape."""
    written = yaml.dump({"key": text}, default_style=style, width=20, allow_unicode=True)
    (document,) = sources.read_text(
        "kind: X\napiVersion: v1\n" + written.replace('"key"', "key", 1), "a.yaml"
    )
    assert isinstance(document, Document)
    lines = document.text.split("\n")
    value = str(document.tree.get("key", ""))
    for offset, character in enumerate(value):
        place = document.location_of(("key",), offset)
        if place is not None and not character.isspace():
            assert lines[place.line - 1][place.column - 1] in (character, "\\")


@given(st.lists(st.text(st.sampled_from("ab\"'\\$ \n"), max_size=5), max_size=4))
def test_every_place_in_a_script_holds_its_character(texts: list[str]) -> None:
    script = "vllm serve " + " ".join(f"'{part}'" if "'" not in part else f"{part!r}" for part in texts)
    for command in shell.commands(script, shell.Variables()):
        for word in command.words:
            start = positions.line_starts(script)[word.line] + word.column
            found = positions.of_word(script, start, word.text) or []
            assert all(
                script[at] in (character, "\\") for at, character in zip(found, word.text, strict=False)
            )
