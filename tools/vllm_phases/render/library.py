"""Helm's Go library inside this process (package helm-python-sdk, pinned).

The only module that touches the package's private C interface: its public `Chart.render` knows neither
Kubernetes nor API versions. Two traps: rendering changes a loaded chart (it drops the dependencies that
this rendering disables), so load one for every rendering; and Go writes Helm's warnings to file
descriptor 2, behind Python's back.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vllm_phases.render.errors import render_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from helm_python.chart import Chart

    from vllm_phases.render import Release


def load(chart: Path) -> Chart:
    """Load a chart from a folder or .tgz."""
    from helm_python.chart import Chart

    return Chart.load(chart)


def load_files(files: Mapping[str, bytes]) -> Chart:
    """Load a chart from its files, named as in a packaged chart ("stack/Chart.yaml")."""
    from helm_python.chart import Chart

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return Chart.load_archive(buffer.getvalue())


def render(chart: Chart, values: Mapping[str, Any], release: Release) -> dict[str, str]:
    """Template path to text. Values that the chart's schema refuses are an error."""
    from helm_python import _native

    options = {
        "name": release.name,
        "namespace": release.namespace,
        "kube_version": release.kube_version,
        "api_versions": list(release.api_versions),
    }
    rendered = _native.call_string("helm_render", chart._raw(), json.dumps(values), json.dumps(options))
    templates: dict[str, str] = json.loads(rendered)
    return templates


@contextmanager
def calls() -> Iterator[list[str]]:
    """Around calls of the library: its errors leave as RenderError, what Go prints lands in the list."""
    from helm_python.errors import HelmError

    printed: list[str] = []
    saved = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield printed
        except HelmError as error:
            raise render_error(error.detail) from None
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            printed.extend(file.read().decode(errors="replace").splitlines())
