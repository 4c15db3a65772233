"""Scripts as commands: what a shell would make of the words, as far as the script tells."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from vllm_phases.sources.shell import Variables, Word, commands


def words(script: str, **known: str | None) -> list[list[str]]:
    """The words of each command, with "?" before those that are not known."""
    return [
        [("" if word.known else "?") + word.text for word in command.words]
        for command in commands(script, Variables(dict(known)))
        if command.words
    ]


# What a real shell agrees with: each script ends in `show WORDS`, and prints every word on its own line.
SCRIPTS = [
    "show a 'b c' \"d e\" f\\ g h'i'\"j\"",
    "show a \\\n  --b  # not this\n",
    'X=1; Y="$X 2"; show $X "$Y" ${X}y \'$X\' \\$X',
    'X=\'a b\'; show $X "$X" --x="$X"',
    'show ${UNSET_:-a b} "${UNSET_:-a b}" ${UNSET_-}',
    'A=(--a \'b c\'\n  # comment\n  --d); A+=(--e); show "${A[@]}" x"${A[@]}"y',
    'A=(); show "${A[@]}" "" end',
    "X=a; X+=b; export Y=$X; show $Y",
    'show \'{"a": "b c"}\' "{\\"a\\": \\"$HOME_X\\"}" {"a":1}',
    "true && show a; show b | cat\nshow c & wait",
    "if true; then show a; fi; for x in 1; do show b; done",
    "case x in x) show a;; esac",
    "show a 2>&1 >/dev/stdout b",
    "cat <<EOF >/dev/null\nshow no\nEOF\nshow yes",
    "cat <<-'EOF' >/dev/null\n\tshow no\n\tEOF\nshow yes",
    "(show a); { show b; }",
    'show "$*" a#b "#c"',
]


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here to agree with")
@pytest.mark.parametrize("script", SCRIPTS, ids=range(len(SCRIPTS)))
def test_bash_agrees(script: str) -> None:
    prelude = 'show() { echo BEGIN; for w in "$@"; do printf \'%s\\n\' "$w"; done; }; HOME_X=x\n'
    done = subprocess.run(["bash", "-c", prelude + script], capture_output=True, text=True, check=True)
    real = [part.splitlines() for part in done.stdout.split("BEGIN\n")[1:]]
    variables = Variables({"HOME_X": "x"}, {"@": ()})
    ours = [
        [word.text for word in command.words[1:]]
        for command in commands(script, variables)
        if command.words and command.words[0].text == "show"
    ]
    assert ours == real


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("vllm serve $MODEL", [["vllm", "serve", "?$MODEL"]]),
        (
            "a --rank=$((X * 8)) `date` $(date) ${X%y}",
            [["a", "?--rank=$((X * 8))", "?`date`", "?$(date)", "?${X%y}"]],
        ),
        ("if x; then M=a; fi; b $M", [["x"], ["b", "?$M"]]),
        ('a $1 $@ "$@"', [["a", "?$1", "?$@", "?$@"]]),
        ("a 'unclosed", [["a", "unclosed"]]),
        ("a $(unclosed", [["a", "?$(unclosed"]]),
    ],
)
def test_what_run_time_decides_stays_as_written(script: str, found: list[list[str]]) -> None:
    assert words(script) == found


def test_the_environment_is_known() -> None:
    assert words("a $X $Y", X="1", Y=None) == [["a", "1", "?$Y"]]


def test_undefined_variables_are_named() -> None:
    (command,) = commands("a --x=$X$Y", Variables({"Y": None}))
    assert command.words[1].undefined == ("X",)


def test_only_a_lone_unquoted_expansion_may_be_many_words() -> None:
    (command,) = commands('a $X "$X" -$X ${X} $(x)', Variables())
    assert [word.opaque for word in command.words] == [False, True, False, False, True, True]


def test_assignments_before_a_command_and_exports() -> None:
    variables = Variables()
    first, second = commands("export A=1\nB=2 c", variables)
    assert variables.exports["A"].text == "1"
    assert [word.text for word in second.words] == ["c"]
    assert second.assignments["B"] == Word("2", line=1, column=2)
    assert first.words[0].text == "export"


def test_words_know_their_place() -> None:
    (command,) = commands("\n  vllm serve \\\n    --port 80", Variables())
    assert [(word.text, word.line, word.column) for word in command.words] == [
        ("vllm", 1, 2),
        ("serve", 1, 7),
        ("--port", 2, 4),
        ("80", 2, 11),
    ]


def test_here_documents_belong_to_the_command() -> None:
    (command,) = commands("bash <<'EOF'\nvllm serve m\nEOF\n", Variables())
    assert command.document is not None
    assert (command.document.text, command.document.line) == ("vllm serve m", 1)
