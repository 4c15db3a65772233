"""From paths and standard input to documents."""

from __future__ import annotations

import itertools
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vllm_phases.finding import Finding, Location, Severity, UsageError
from vllm_phases.sources import yaml_reader
from vllm_phases.sources.document import Document
from vllm_phases.sources.yaml_reader import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vllm_phases.sources.document import Kind

STDIN = "-"
MAX_BYTES = 64 * 2**20
STDIN_NAME = "<stdin>"
_YAML, _SHELL = (".yaml", ".yml", ".json"), (".sh", ".bash")
_CHART = "Chart.yaml"
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_KUSTOMIZATION = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}  # may be left out
_SKIPPED = frozenset(("node_modules", "__pycache__", "venv"))
_SEPARATOR = re.compile(r"^---(?=[ \t\r]|$)", re.MULTILINE)
_COMMAND = re.compile(r"\bvllm\s+serve\b|vllm\.entrypoints\.|\bvllm[-_]router\b|\b(docker|podman)\s+run\b")
_SHAPES = {"{{": "{{ … }}", "%{": "%{ … }"}  # Go and Jinja, Terraform
_HOLE = re.compile(r"\{\{.*?\}\}|%\{.*?\}", re.DOTALL)
_OURS = re.compile(r"""^\s*(- )?["']?(apiVersion|kind|services)["']?\s*:""", re.MULTILINE)


@dataclass(frozen=True)
class Sources:
    """What was read. texts holds what has no file to show lines from, by its name."""

    documents: tuple[Document, ...]
    findings: tuple[Finding, ...]
    texts: dict[str, str]


def read(
    paths: Sequence[str],
    stdin: Any = None,
    excluded: Callable[[Path], bool] = lambda file: False,
    contents: dict[str, bytes] | None = None,
) -> Sources:
    """Read files, folders (all YAML, JSON and shell files below) and "-", standard input.

    `contents`, where it is given, keeps what was read by the name of its file; what it has is not read again.
    UsageError for a path that is not there. In folders, what is no document of ours is passed over, whether
    it can be read or not, and so are the files that `excluded` is true for.
    """
    kept = {} if contents is None else contents
    documents: list[Document] = []
    findings: list[Finding] = []
    texts: dict[str, str] = {}
    for name, named in _named(paths, excluded):
        if name not in kept:
            kept[name] = _content(name, stdin)
        content = kept[name] if contents is not None else kept.pop(name)
        text, problem = _decoded(content, name)
        if problem:
            findings.append(problem)
            continue
        if name == STDIN_NAME:
            texts[name] = text
        for found in read_text(text, name, named):
            if isinstance(found, Finding):
                findings.append(found)
            else:
                documents.append(found)
    patches = _patches(documents)
    whole = tuple(found for found in documents if os.path.normpath(found.file) not in patches)
    return Sources(whole, tuple(findings), texts)


def _patches(documents: Sequence[Document]) -> set[str]:
    """The files that kustomizations lay over others: each is a part of an object, to be judged once built."""
    return {
        os.path.normpath(os.path.join(os.path.dirname(document.file), str(path)))
        for document in documents
        if os.path.basename(document.file) in _KUSTOMIZATIONS
        for path in (
            *(patch.text("path") for patch in document.root.items("patches")),
            *(patch.text() for patch in document.root.items("patchesStrategicMerge")),
        )
    }


def read_text(text: str, name: str, named: bool = True) -> Iterator[Document | Finding]:
    """The documents of one text, and LINT001 for each that cannot be read.

    named  whether the user named this very file, and so wants to hear that nothing in it is known
    """
    if name.endswith(_SHELL) or text.startswith("#!"):
        yield Document(name, "command", text, text)
        return
    if not named and os.path.basename(name) == _CHART:
        fix = f"Render it: helm template {os.path.dirname(name)} | vllm-phases lint -."
        yield _unreadable(
            Location(name, 1, 1), "is a Helm chart: its templates are not read", Severity.NOTE, fix
        )
        return
    found = list(_yaml(text, name, named))
    unreadable = all(isinstance(item, Finding) for item in found)
    if unreadable and not name.endswith(_YAML) and _COMMAND.search(text):
        yield Document(name, "command", text, text)
        return
    yield from found
    if named and not found and text.strip():
        message = "holds no Kubernetes object, no docker compose file and no command that starts vLLM"
        yield _unreadable(Location(name, 1, 1), message, Severity.WARNING)


def _yaml(text: str, name: str, named: bool) -> Iterator[Document | Finding]:
    for line, offset, part in _parts(text):
        if not part.strip() or _only_comments(part):
            continue
        try:
            trees, repeated = _trees(part)
        except Unreadable as error:
            if named or _OURS.search(part):
                yield _broken(part, name, line, error)
            continue
        if os.path.basename(name) in _KUSTOMIZATIONS:
            trees = [{**_KUSTOMIZATION, **tree} for tree in trees if isinstance(tree, dict)]
        for tree in trees:
            if kind := _kind(tree):
                yield Document(name, kind, tree, part, line, offset=offset, repeated=tuple(repeated))


def _parts(text: str) -> Iterator[tuple[int, int, str]]:
    """The texts between separators, with line and offset of each; the separator before it becomes blanks."""
    start, line, blanks = 0, 1, ""
    for match in _SEPARATOR.finditer(text):
        part = text[start : match.start()]
        yield line, start - len(blanks), blanks + part
        line += part.count("\n")
        start, blanks = match.end(), "   "
    yield line, start - len(blanks), blanks + text[start:]


def _only_comments(part: str) -> bool:
    lines = (line.strip() for line in part.splitlines())
    return all(not line or line.startswith(("#", "%")) for line in lines)


def _trees(part: str) -> tuple[list[Any], list[yaml_reader.KeyPath]]:
    try:
        return yaml_reader.documents(part)
    except Unreadable:
        if part.lstrip()[:1] in ("{", "["):  # JSON may have tabs where YAML may not
            try:
                return [json.loads(part)], []
            except (ValueError, RecursionError):
                pass
        raise


def _kind(tree: Any) -> Kind | None:
    if not isinstance(tree, dict):
        return None
    if isinstance(tree.get("apiVersion"), str) and isinstance(tree.get("kind"), str):
        return "kubernetes"
    services = tree.get("services")
    if isinstance(services, dict) and any(isinstance(service, dict) for service in services.values()):
        return "compose"
    return None


def _broken(part: str, name: str, line: int, error: Unreadable) -> Finding:
    place = Location(name, line + error.line, error.column + 1)
    hole = _HOLE.search(part)
    if hole is None:
        return _unreadable(place, f"is no YAML that can be read: {error}")
    fix = "Render it first: `helm template … | vllm-phases lint -`; for our charts, `vllm-phases check`."
    return _unreadable(
        place, f"is a template, not a manifest: it holds {_SHAPES[hole[0][:2]]}", Severity.WARNING, fix
    )


def _unreadable(
    place: Location, message: str, severity: Severity = Severity.ERROR, remediation: str = ""
) -> Finding:
    return Finding("LINT001", "unreadable", severity, message, remediation, location=place)


def _decoded(content: bytes, name: str) -> tuple[str, Finding | None]:
    if len(content) > MAX_BYTES:
        return "", _unreadable(Location(name, 1, 1), f"is larger than {MAX_BYTES // 2**20} MiB")
    try:
        return content.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        return "", _unreadable(Location(name, 1, 1), f"is not UTF-8 text (byte {error.start})")


def _named(paths: Sequence[str], excluded: Callable[[Path], bool]) -> Iterator[tuple[str, bool]]:
    """Each file once, be it named twice in two ways, and whether the user named it."""
    seen: set[str] = set()
    for path in dict.fromkeys(paths):
        folder = path != STDIN and os.path.isdir(path)
        files = map(str, itertools.filterfalse(excluded, _walk(Path(path)))) if folder else (path,)
        for name in files:
            real = STDIN if name == STDIN else os.path.realpath(name)
            if real not in seen:
                seen.add(real)
                yield (STDIN_NAME if name == STDIN else name), not folder


def _content(name: str, stdin: Any) -> bytes:
    if name == STDIN_NAME:
        return bytes(stdin.read()) if stdin else b""
    return _bytes(Path(name))


def _bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(f"{file}: no such file or folder") from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None


def text_beside(document: Document, name: str) -> tuple[str, str] | None:
    """Name and text of a file in the folder of a document or below it; None where there is none to read."""
    folder = Path(document.file).parent
    file = folder / name
    try:
        inside = file.resolve().is_relative_to(folder.resolve())
        if Path(name).is_absolute() or not inside or not Path(document.file).is_file() or not file.is_file():
            return None
        text, problem = _decoded(_bytes(file), str(file))
    except (OSError, ValueError, UsageError):  # a name that no file can have, or no right to read it
        return None
    return None if problem else (str(file), text)


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        if _CHART in files and "templates" in folders:
            folders.remove("templates")
        for name in sorted(files):
            if name.endswith((*_YAML, *_SHELL)) and not name.startswith("."):
                yield Path(root, name)
