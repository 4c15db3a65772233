"""`vllm serve --config FILE`: the options of a YAML file among those of the command line.

As vllm/utils/argparse_utils.py reads them (_pull_args_from_config and load_config_file, 0.11 to 0.33): they
stand before the options of the command line, which so win, and behind a model in first place.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from vllm_phases import catalogue
from vllm_phases.catalogue.store import sort_key
from vllm_phases.sources.shell import Word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vllm_phases.catalogue import EngineRelease
    from vllm_phases.sources.document import Node

OPTION = "--config"
EXTENSIONS = (".yaml", ".yml")
_HOLE = re.compile(r"\{\{|\$")


def expanded(
    words: Sequence[Word], release: EngineRelease, find: Callable[[str], Node | None]
) -> tuple[tuple[Word, ...], Node | None]:
    """The words of a command line with those of its file in place of --config, and the file.

    The words stay as they are, without a file, where its content is not known or vLLM does not read it.
    find  the YAML document at a path of the container
    """
    at = [index for index, word in enumerate(words) if word.text == OPTION]
    name = words[at[0] + 1] if len(at) == 1 and at[0] + 1 < len(words) else None
    read = name is not None and name.known and name.text.endswith(EXTENSIONS)
    root = find(name.text) if name is not None and read else None
    if root is None or not isinstance(root.value, dict):
        return tuple(words), None
    start = 0 if words[0].text.startswith("-") else 1
    before, after = words[start : at[0]], words[at[0] + 2 :]
    return (*words[:start], *_words(root, release), *before, *after), root


def false_is_lost(key: str, release: EngineRelease) -> bool:
    """Whether `key: false` of a file turns nothing off."""
    option = f"--no-{key}"
    found = release.resolve(option)
    flag = found.flag if found else None
    exact = flag is not None and option in (*flag.options, *flag.hidden)
    return not exact or not _since("configFileFalse", release)


def mapping_is_lost(release: EngineRelease) -> bool:
    """Whether a mapping of a file becomes a text that is no JSON."""
    return not _since("configFileMappings", release)


def _words(root: Node, release: EngineRelease) -> Iterator[Word]:
    for key, node in root.entries():
        if node.value is False:
            if not false_is_lost(key, release):
                yield Word(f"--no-{key}", node=node)
        elif node.value != []:
            yield Word(f"--{key}", node=node)
            yield from (_word(value, place) for value, place in _values(node, release))


def _values(node: Node, release: EngineRelease) -> Iterator[tuple[Any, Node]]:
    """The values that an entry becomes; a mapping becomes JSON, or in older releases Python's own writing."""
    if isinstance(node.value, list):
        yield from ((item.value, item) for item in node.items())
    elif isinstance(node.value, dict) and not mapping_is_lost(release):
        yield json.dumps(node.value), node
    elif node.value is not True:
        yield node.value, node


def _word(value: Any, node: Node) -> Word:
    text = str(value)
    return Word(text, not _HOLE.search(text), node=node)


def _since(feature: str, release: EngineRelease) -> bool:
    return sort_key(release.version) >= sort_key(catalogue.facts("features")[feature]["since"])
