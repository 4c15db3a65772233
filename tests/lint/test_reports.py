"""Findings in the formats that other programs read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from click import unstyle
from vllm_phases.finding import Edit, Finding, Fix, Location, Severity
from vllm_phases.report import github, junit, sarif
from vllm_phases.report.lint import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

FLAG = Finding(
    "ARG001",
    "unknown-flag",
    Severity.ERROR,
    "vLLM 0.33.0 has no flag --x",
    "Remove --x.",
    "spec.containers[0].args[1]",
    "Pod/demo",
    Location("deploy/a b.yaml", 7, 15),
)
VARIABLE = Finding(
    "ENV001", "unknown-environment", Severity.WARNING, "50% of: a, b", location=Location("b.yaml", 2, 1)
)
NOTE = Finding("LINT003", "unknown-version", Severity.NOTE, "nothing tells\nthe version \x00", "Say it.")
EDIT = Edit(Location("deploy/a b.yaml", 7, 15), Location("deploy/a b.yaml", 7, 18), 90, "--x", "--y")
FIXABLE = replace(FLAG, fix=Fix((EDIT,), safe=True))
FINDINGS = (FLAG, VARIABLE, NOTE)


class TestSarif:
    def log(self, *findings: Finding) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(sarif.report(findings, {}))
        return found

    def test_has_one_run_with_the_broken_rules(self) -> None:
        log = self.log(*FINDINGS)
        assert log["version"] == "2.1.0"
        assert log["$schema"].endswith("/sarif-schema-2.1.0.json")
        (run,) = log["runs"]
        driver = run["tool"]["driver"]
        assert (driver["name"], [rule["id"] for rule in driver["rules"]]) == (
            "vllm-phases",
            ["ARG001", "ENV001", "LINT003"],
        )
        for rule in driver["rules"]:
            assert rule["shortDescription"]["text"]
            assert rule["help"]["markdown"].startswith(rule["shortDescription"]["text"])
            assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")

    def test_fixes_replace_regions(self) -> None:
        safe, unsafe = self.log(FIXABLE, replace(FLAG, fix=Fix((EDIT,), safe=False)))["runs"][0]["results"]
        (change,) = safe["fixes"][0]["artifactChanges"]
        assert change["artifactLocation"]["uri"] == "deploy/a%20b.yaml"
        assert change["replacements"] == [
            {
                "deletedRegion": {"startLine": 7, "startColumn": 15, "endLine": 7, "endColumn": 18},
                "insertedContent": {"text": "--y"},
            }
        ]
        assert "fixes" not in unsafe

    def test_results_point_at_rule_file_and_region(self) -> None:
        first, second, third = self.log(*FINDINGS)["runs"][0]["results"]
        assert (first["ruleId"], first["ruleIndex"], first["level"]) == ("ARG001", 0, "error")
        assert first["message"]["text"] == "Pod/demo: vLLM 0.33.0 has no flag --x. Remove --x."
        (location,) = first["locations"]
        assert location["physicalLocation"] == {
            "artifactLocation": {"uri": "deploy/a%20b.yaml", "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 7, "startColumn": 15},
        }
        assert (second["level"], third["level"], third["locations"]) == ("warning", "note", [])

    def test_is_complete_without_findings(self) -> None:
        (run,) = self.log()["runs"]
        assert run["results"] == []
        assert run["tool"]["driver"]["rules"] == []

    def test_a_file_below_the_current_folder_is_relative(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.chdir(tmp_path)
        inside = sarif._artifact(str(tmp_path / "x" / "a.yaml"))
        assert inside == {"uri": "x/a.yaml", "uriBaseId": "%SRCROOT%"}
        assert sarif._artifact("/elsewhere/a.yaml") == {"uri": "file:///elsewhere/a.yaml"}
        assert sarif._artifact("<stdin>") == {"uri": "stdin"}

    def test_fingerprints_outlive_moved_lines(self) -> None:
        from dataclasses import replace

        moved = replace(FLAG, location=Location("deploy/a b.yaml", 70, 1), message="other words")
        assert sarif.fingerprints([FLAG]) == sarif.fingerprints([moved])
        assert len({*sarif.fingerprints([FLAG, moved, VARIABLE])}) == 3, "two at one place are told apart"
        assert sarif.fingerprints([FLAG]) != sarif.fingerprints([replace(FLAG, object="Pod/other")])


class TestGithub:
    def test_errors_come_first_and_special_characters_are_escaped(self) -> None:
        assert github.report((VARIABLE, NOTE, FLAG), {}).splitlines() == [
            "::error file=deploy/a b.yaml,line=7,col=15,title=ARG001 unknown-flag::"
            "Pod/demo: vLLM 0.33.0 has no flag --x%0ARemove --x.",
            "::warning file=b.yaml,line=2,col=1,title=ENV001 unknown-environment::50%25 of: a, b",
            "::notice title=LINT003 unknown-version::nothing tells%0Athe version \x00%0ASay it.",
            "vllm-phases: 1 errors, 1 warnings, 1 notes",
        ]

    def test_says_how_many_github_hides(self) -> None:
        last = github.report([FLAG] * 12, {}).splitlines()[-1]
        assert last == "vllm-phases: 12 errors; GitHub does not show 2 of them"

    def test_says_that_nothing_was_found(self) -> None:
        assert github.report((), {}) == "vllm-phases: no findings"


class TestJunit:
    def test_has_a_suite_for_each_file(self) -> None:
        root = ElementTree.fromstring(junit.report(FINDINGS, {}))
        assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in root] == [
            ("deploy/a b.yaml", "1", "1"),
            ("b.yaml", "1", "1"),
            ("vllm-phases", "1", "0"),
        ]
        failure = root.find("testsuite/testcase/failure")
        assert failure is not None
        assert failure.get("type") == "error"
        assert failure.text == "deploy/a b.yaml:7:15\nvLLM 0.33.0 has no flag --x\nRemove --x."

    def test_a_clean_run_is_one_case_that_passes(self) -> None:
        root = ElementTree.fromstring(junit.report((), {}))
        assert [case.get("name") for case in root.iter("testcase")] == ["no findings"]
        assert not list(root.iter("failure"))


class TestJson:
    def test_has_a_versioned_envelope(self) -> None:
        found = json.loads(FORMATS["json"](FINDINGS, {}))
        assert found["version"] == 1
        assert found["findings"][0] == {
            "rule_id": "ARG001",
            "name": "unknown-flag",
            "severity": "error",
            "message": "vLLM 0.33.0 has no flag --x",
            "remediation": "Remove --x.",
            "object": "Pod/demo",
            "path": "spec.containers[0].args[1]",
            "file": "deploy/a b.yaml",
            "line": 7,
            "column": 15,
            "fix": None,
        }

    def test_says_what_a_fix_changes(self) -> None:
        (found,) = json.loads(FORMATS["json"]((FIXABLE,), {}))["findings"]
        assert found["fix"] == {
            "safe": True,
            "edits": [
                {
                    "file": "deploy/a b.yaml",
                    "line": 7,
                    "column": 15,
                    "end_line": 7,
                    "end_column": 18,
                    "text": "--y",
                }
            ],
        }


class TestText:
    def test_shows_lines_of_standard_input(self) -> None:
        found = Finding(
            "ARG001", "unknown-flag", Severity.ERROR, "no", "Fix.", location=Location("<stdin>", 2, 3)
        )
        shown = unstyle(FORMATS["text"]([found], {"<stdin>": "a:\n  b: 1\n"}))
        assert shown.splitlines()[1:] == [
            "  2 |   b: 1",
            "    |   ^",
            "  Fix.",
            "",
            "1 error",
        ]

    def test_says_that_nothing_was_found(self) -> None:
        assert FORMATS["text"]([], {}) == "no findings"


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_takes_every_finding(name: str) -> None:
    assert FORMATS[name](FINDINGS, {})
    assert FORMATS[name]((), {})
