"""Which documents may be deployed together.

A folder often holds several deployments: the samples of a project, the overlays of a kustomization. An object
can be deployed once. Where two files hold it and differ, their folders are judged apart, and in one folder
each of these files by itself.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from vllm_phases.model.objects import objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vllm_phases.model.objects import Object
    from vllm_phases.sources.document import Document


def split(documents: Sequence[Document], depth: int = 0) -> Iterator[tuple[Document, ...]]:
    """The documents of each deployment; all of them, where no two files contradict each other.

    depth  how many folders of their paths the documents have in common
    """
    one_file = len({document.file for document in documents}) <= 1
    if one_file or not _contested(documents):
        yield tuple(documents)
        return
    folders: dict[str, list[Document]] = {}
    files: dict[str, list[Document]] = {}
    for document in documents:
        parts = PurePath(document.file).parts
        if len(parts) > depth + 1:
            folders.setdefault(parts[depth], []).append(document)
        else:
            files.setdefault(document.file, []).append(document)
    for below in folders.values():
        yield from split(below, depth + 1)
    yield from _of_one_folder(files)


def _of_one_folder(files: dict[str, list[Document]]) -> Iterator[tuple[Document, ...]]:
    """Each file that another one contradicts by itself, the rest together."""
    contested = _contested([document for held in files.values() for document in held])
    for file in contested:
        yield tuple(files[file])
    if rest := tuple(document for file, held in files.items() if file not in contested for document in held):
        yield rest


def _contested(documents: Sequence[Document]) -> dict[str, None]:
    """The files with an object that another file holds too, but not the same, in the order of the files."""
    first: dict[tuple[str, ...], Object] = {}
    contested: dict[str, None] = {}
    for found in objects(documents):
        if not found.name:
            continue
        other = first.setdefault((found.group, found.kind, found.namespace, found.name), found)
        here, there = found.node.document.file, other.node.document.file
        if here != there and found.node.value != other.node.value:
            contested[there] = contested[here] = None
    return contested
