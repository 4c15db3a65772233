"""From a folder of sources to the generated files: load and prove, compose the texts, compare, write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from vllm_phases.finding import UsageError
from vllm_phases.schema import house, proof
from vllm_phases.schema.bundle import bundle
from vllm_phases.schema.docs import values_md
from vllm_phases.schema.sources import Sources, read
from vllm_phases.schema.values_yaml import values_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# In this order, because each takes for granted what those before it found good.
_CHECKS = (
    house.malformed,
    house.misused,
    house.broken,
    house.endless,
    house.problems,
    proof.wrong_values,
    proof.wrong_charts,
)


def load(folder: Path) -> Sources:
    """Read the sources and prove them good.

    Raises UsageError with one line for each thing that is wrong: file and line, path in it, what to write.
    """
    sources = read(folder)
    for check in _CHECKS:
        found = dict.fromkeys(f"{sources.where(place)}: {text}" for place, text in check(sources))
        if found:
            raise UsageError("\n".join(found))
    return sources


def texts(sources: Sources, charts: Path, docs: Path) -> dict[Path, str]:
    """The text of every generated file: two for each chart, and the document."""
    found: dict[Path, str] = {}
    for chart in sources.charts:
        schema = json.dumps(bundle(sources, chart), indent=2, ensure_ascii=False)
        found[charts / chart / "values.schema.json"] = f"{schema}\n"
        found[charts / chart / "values.yaml"] = values_yaml(sources, chart)
    return {**found, docs: values_md(sources)}


def stale(wanted: Mapping[Path, str]) -> dict[Path, str]:
    """The files that are missing or hold something else, each with what stands there now."""
    found = {path: path.read_text("utf-8", "replace") if path.is_file() else "" for path in wanted}
    return {path: text for path, text in found.items() if text != wanted[path]}


def write(wanted: Mapping[Path, str]) -> None:
    """Write every text, making folders where needed; UsageError where that is not possible."""
    for path, text in wanted.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8", newline="\n")
        except OSError as error:
            raise UsageError(f"{path.as_posix()}: cannot be written: {error.strerror}") from None
