"""The catalogue knows of the installed release what that release says of itself."""

from __future__ import annotations

from typing import Any

import pytest
from vllm_phases import catalogue

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def known(release: str) -> catalogue.EngineRelease:
    known = catalogue.load(release)
    assert known.version == release, "the catalogue lacks the release that requirements/engine.in installs"
    return known


def test_flags(known: catalogue.EngineRelease, facts: Any) -> None:
    assert {option: flag.dest for option, flag in known.flags.items()} == facts["options"]


def test_environment_variables(known: catalogue.EngineRelease, facts: Any) -> None:
    assert sorted(known.env) == facts["env"]


def test_connectors(known: catalogue.EngineRelease, facts: Any) -> None:
    assert sorted(known.connectors) == facts["connectors"]


def test_kv_transfer_fields(known: catalogue.EngineRelease, facts: Any) -> None:
    assert sorted(known.kv_transfer_fields) == facts["kv_transfer_fields"]
