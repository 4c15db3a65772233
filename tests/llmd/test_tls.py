"""TLS on every hop: client, Envoy, picker, sidecars and engines, with the certificate of one Secret.

LLMD_EPP and LLMD_SIDECAR name llm-d's own picker and sidecar, built by hand. The engines are simulators.
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from .conftest import running_fleet
from .fleet import Fleet, needs_llmd
from .path import SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Render

pytestmark = needs_llmd("TLS between llm-d's own picker, sidecars and engines")

VALUES = {
    "global": {"vllm": {"tls": {"secretName": "vllm-tls", "caKey": "ca.crt"}}},
    "llmd": {"decode": {"replicas": 2}},
}
LONG = " ".join(str(number) for number in range(600))


def certificate(folder: Path) -> dict[str, str]:
    """A new CA and a certificate that it has signed, as a Secret has them. The name in it is nobody's."""
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1")
    for name, more in {"ca": (), "tls": ("-CA", "ca.crt", "-CAkey", "ca.key")}.items():
        words = ("-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt", *more)
        subprocess.run(["openssl", "req", "-x509", *new, *words], cwd=folder, check=True, capture_output=True)
    return {name: (folder / name).read_text() for name in ("ca.crt", "tls.crt", "tls.key")}


@pytest.fixture(scope="module")
def fleet(render: Render, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    objects = render("values/phase2-llmd.yaml", "values/overlays/sim.yaml", values=VALUES)
    secret = certificate(tmp_path_factory.mktemp("certificate"))
    with running_fleet(objects, tmp_path_factory, secret) as fleet:
        yield fleet


def test_requests_are_answered_also_by_way_of_prefill(fleet: Fleet) -> None:
    before = fleet.served("prefill")
    answers = [*fleet.ask_all(f"Question {number}" for number in range(20)), fleet.ask(LONG)]
    assert Counter(answer.status for answer in answers) == {200: 21}
    assert {answer.engine for answer in answers} == set(fleet.named("decode"))
    assert fleet.served("prefill") == before + 1


def test_the_picker_reads_the_engines_metrics(fleet: Fleet) -> None:
    """It counts an engine as ready whose metrics are fresh."""
    deadline = time.monotonic() + SECONDS
    while not (counted := ready(fleet)).endswith(" 3"):
        assert time.monotonic() < deadline, counted
        time.sleep(0.5)


def ready(fleet: Fleet) -> str:
    lines = fleet.fetch("127.0.0.1:9090/metrics", "http").splitlines()
    return next((line for line in lines if line.startswith("llm_d_epp_ready_endpoints{")), "not counted yet")


def test_the_proxy_is_ready_when_it_trusts_the_picker(fleet: Fleet) -> None:
    assert fleet.fetch("127.0.0.1:19001/ready", "http") == ""


def test_nothing_answers_in_the_clear(fleet: Fleet) -> None:
    places = [f"{pod.address}:8000/v1/models" for pod in fleet.pods.values()]
    places += [f"{fleet.pods[name].address}:8200/v1/models" for name in fleet.named("decode")]
    for place in ("127.0.0.1:8081/v1/models", *places):
        with pytest.raises(OSError, match=r"400|reset|closed|end of file|disconnect"):
            fleet.fetch(place, "http")


def test_a_certificate_of_another_ca_is_not_trusted(fleet: Fleet, tmp_path: Path) -> None:
    assert fleet.ask("Before").status == 200
    other = certificate(tmp_path)["ca.crt"]
    fleet.kill("proxy")
    (fleet.folder / "tls/ca.crt").write_text(other)
    fleet.start_proxy()
    statuses = Counter(fleet.until_answered() for _ in range(5))
    assert set(statuses) <= {500, 503}
