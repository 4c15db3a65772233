"""A chart's files, and what Helm makes of its default values."""

from __future__ import annotations

import json
import re
import tarfile
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vllm_phases import yaml_document
from vllm_phases.render import Release, library

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.finding import Location
    from vllm_phases.yaml_document import KeyPath

_METADATA = re.compile(r"[^/]+/(charts/[^/]+/)*(Chart|values)\.yaml")


@dataclass(frozen=True)
class ChartFiles:
    """Every file of a chart as Helm packages it: subcharts unpacked, .helmignore obeyed, links followed."""

    path: Path
    root: str  # the chart's name, the first part of every member's name
    members: Mapping[str, bytes]

    @classmethod
    def read(cls, chart: Path) -> ChartFiles:
        """Read a folder or .tgz; RenderError if Helm cannot load it."""
        with (
            tempfile.TemporaryDirectory() as folder,
            library.calls(),
            library.load(chart) as loaded,
            tarfile.open(loaded.save(folder)) as archive,
        ):
            files = ((member.name, archive.extractfile(member)) for member in archive)
            members = {name: file.read() for name, file in files if file}
        return cls(chart, next(iter(members)).split("/")[0], members)

    @property
    def schema(self) -> bytes | None:
        """The text of the chart's own values.schema.json."""
        return self.members.get(f"{self.root}/values.schema.json")

    def coalesce(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values that the chart's templates see under the user's values.

        Helm answers this itself: a copy of the chart whose only template prints its values is rendered,
        so defaults, aliases, conditions, globals and deleted keys come out exactly as in an installation.
        """
        probe = f"{self.root}/templates/values.json"
        files = {name: text for name, text in self.members.items() if _METADATA.fullmatch(name)}
        with library.calls(), library.load_files({**files, probe: b"{{ toJson .Values }}"}) as chart:
            answer: dict[str, Any] = json.loads(library.render(chart, values, Release())[probe])
        return answer

    @cached_property
    def default_origins(self) -> Mapping[KeyPath, Location]:
        """The place of every default; a parent chart's default hides the one of its subchart."""
        return dict(self._origins(self.root, ()))

    def _origins(self, chart: str, path: KeyPath) -> Iterator[tuple[KeyPath, Location]]:
        """The defaults of the chart in folder `chart`, whose values stand under `path`; subcharts first."""
        metadata, _ = yaml_document.parse(self.members[f"{chart}/Chart.yaml"].decode(), chart)
        for dependency in metadata.get("dependencies", ()):
            subchart = f"{chart}/charts/{dependency['name']}"
            if f"{subchart}/Chart.yaml" in self.members:
                yield from self._origins(subchart, (*path, dependency.get("alias", dependency["name"])))
        member = f"{chart}/values.yaml"
        _, places = yaml_document.parse(self.members.get(member, b"").decode(), self._shown(member))
        yield from (((*path, *key), place) for key, place in places.items())

    def _shown(self, member: str) -> str:
        """How messages name a file of the chart: by its path on disk, or inside the archive."""
        if self.path.is_dir():
            return str(self.path / Path(member).relative_to(self.root))
        return f"{self.path}:{member}"
