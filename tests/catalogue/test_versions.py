"""Which release of the catalogue answers for a version that somebody asked for."""

from __future__ import annotations

import pytest
from vllm_phases.catalogue import UnknownVersion, load, versions


def test_the_catalogue_holds_every_release_from_0_11_on() -> None:
    assert versions()[:3] == ("0.11.0", "0.11.1", "0.11.2")
    assert {"0.15.0", "0.15.1", "0.23.0", "0.24.0", "0.33.0"} <= set(versions())


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("0.33.0", "0.33.0"),
        ("v0.33.0", "0.33.0"),
        ("0.20", "0.20.0"),
        ("0.33.0rc1", "0.33.0"),
        ("0.20.2+cu129", "0.20.2"),
        ("0.20.2.post1", "0.20.2"),
        ("0.12.7", "0.12.0"),
    ],
)
def test_a_version_is_answered_by_the_nearest_release_at_or_below_it(asked: str, found: str) -> None:
    release = load(asked)
    assert (release.version, release.requested) == (found, asked)
    assert not release.newer_than_catalogue


@pytest.mark.parametrize("asked", ["0.99.0", "1.0.0"])
def test_a_version_after_the_newest_is_answered_by_the_newest_and_marked(asked: str) -> None:
    release = load(asked)
    assert release.version == versions()[-1]
    assert release.newer_than_catalogue


def test_a_version_before_the_oldest_is_refused() -> None:
    with pytest.raises(UnknownVersion) as error:
        load("0.10.2")
    assert str(error.value) == (
        "engine version 0.10.2 is older than the catalogue, which holds vLLM 0.11.0 to "
        f"{versions()[-1]}: set a version in that range"
    )


@pytest.mark.parametrize("asked", ["latest", "", "0", "0.33.0.1", "nightly-0.33.0", "0.33x", "0.33.0 "])
def test_what_is_no_release_number_is_refused(asked: str) -> None:
    newest = versions()[-1]
    with pytest.raises(UnknownVersion) as error:
        load(asked)
    assert str(error.value) == (
        f"engine version {asked!r} is not a release number: set one such as {newest} "
        f"(the catalogue holds vLLM 0.11.0 to {newest})"
    )
