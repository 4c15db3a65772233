"""Phase 1 with real engines: what a user gets from `helm install` with `values/phase1.yaml`.

The namespace admits only pods of the `restricted` Pod Security level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.control_plane import CommandError

from .release import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .client import Client
    from .machine import Machine
    from .site import Site

pytestmark = pytest.mark.node

ENGINES = ("-l", "app.kubernetes.io/instance=demo,app.kubernetes.io/component=server")


@pytest.fixture(scope="module")
def release(node: Site, progress: Callable[[str], None]) -> Iterator[Release]:
    """Phase 1, installed and Ready."""
    with node.namespace() as namespace:
        release = Release(node, namespace)
        progress("helm install of phase 1, until its engine is Ready")
        release.apply("install", "phase1")
        yield release


@pytest.fixture(scope="module")
def model(release: Release, client: Client) -> str:
    """The model that the front door offers."""
    (only,) = client.get(f"{release.url}/v1/models")["data"]
    return str(only["id"])


def test_the_engine_became_ready_at_the_first_start(release: Release) -> None:
    (pod,) = release.get("pods", *ENGINES)
    (container,) = pod["status"]["containerStatuses"]
    assert (container["ready"], container["restartCount"]) == (True, 0)


def test_the_engine_holds_the_gpu_that_the_values_file_asks_for(release: Release, machine: Machine) -> None:
    (pod,) = release.get("pods", *ENGINES)
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_helm_test_passes(release: Release, progress: Callable[[str], None]) -> None:
    said = release.helm("test", "demo", "--logs")
    progress(said)
    assert said.rstrip().endswith("PASSED")


def test_a_pod_of_another_namespace_gets_a_completion(release: Release, client: Client, model: str) -> None:
    prompt = {"model": model, "prompt": "One, two, three,", "max_tokens": 8, "temperature": 0}
    answer = client.post(f"{release.url}/v1/completions", prompt)
    assert answer["model"] == model
    assert answer["usage"]["completion_tokens"] == 8


def test_a_model_that_is_not_served_is_refused(release: Release, client: Client) -> None:
    with pytest.raises(CommandError, match=r"answered 404: .*The model `other` does not exist"):
        client.post(f"{release.url}/v1/completions", {"model": "other", "prompt": "One"})


def test_uninstall_ends_the_engine(release: Release) -> None:
    release.helm("uninstall", "demo", "--wait", "--timeout=5m")
    release.until_gone("server")
    assert release.get("pods", *ENGINES) == []
