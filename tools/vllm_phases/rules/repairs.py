"""Repairs that several rules propose: of options, of words of commands, of variables.

Each is None where the place in the text is not known for certain, such as a word that a variable brought in.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from vllm_phases.model import Document, Node
from vllm_phases.sources.changes import Add, Change, Remove, RenameKey, Set, Substitute
from vllm_phases.sources.layout import Unclear
from vllm_phases.sources.repair import Repair, changed_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vllm_phases.model import Argument, Engine, Variable, Word


def respelt(word: Word, old: str, new: str, *, safe: bool = True) -> Repair | None:
    """Other characters at the beginning of a word: `--max-len` of `--max-len=8`."""
    column = _column(word, old)
    if word.node is None or column is None:
        return None
    return Repair((Substitute(word.node, word.line, column, old, new),), safe)


def value_set(option: Argument, new: str, *, safe: bool = True) -> Repair | None:
    """Another value for an option with one."""
    if len(option.values) != 1:
        return None
    return respelt(option.values[0], option.values[0].text, new, safe=safe)


def rewritten(word: Word, new: str) -> Repair | None:
    """Another word in the place of one; in a list also where the item is written with escapes."""
    if _is_item(word):
        return Repair((Set(word.node, new),)) if word.node else None
    return respelt(word, word.text, new)


def succeeded(option: Argument, fact: Mapping[str, Any], engine: Engine) -> Repair | None:
    """What took the place of a flag, where catalogue/data/argument_successors.yaml knows that for certain."""
    if option.keys or option.negated or option.word.text.startswith("--no-"):
        return None
    if fact.get("drop"):
        return without(option)
    new = f"--{fact.get('same') or fact.get('write') or ''}"
    name = new.lstrip("-").partition("=")[0].partition(".")[0]
    known = engine.release is not None and f"--{name}" in engine.release.flags
    if not known or name in engine.arguments or ("write" in fact and option.values):
        return None
    return respelt(option.word, option.written, new)


def json_changed(
    option: Argument, path: tuple[str, ...], change: Callable[[Node], Change], *, safe: bool = True
) -> Repair | None:
    """A change in the JSON object that is the value of an option."""
    return _json_changed(option, [(path, change)], safe)


def json_without(option: Argument, keys: Sequence[str]) -> Repair | None:
    """Keys taken out of the JSON object that is the value of an option."""
    return _json_changed(option, [((key,), Remove) for key in keys], True)


def _json_changed(
    option: Argument, changes: Sequence[tuple[tuple[str, ...], Callable[[Node], Change]]], safe: bool
) -> Repair | None:
    text = option.values[0].text if len(option.values) == 1 and not option.keys else ""
    old = text
    try:
        for path, change in changes:
            document = Document("", "kubernetes", json.loads(text), text)
            text = changed_text(change(document.root.at(*path)))
    except (ValueError, RecursionError, Unclear):
        return None
    return respelt(option.values[0], old, text, safe=safe)


def without(option: Argument) -> Repair | None:
    """An option taken out, with its values."""
    words = (option.word, *(() if option.attached else option.values))
    changes = [change for word in words if (change := _removed(word))]
    return Repair(tuple(changes)) if len(changes) == len(words) else None


def without_word(word: Word) -> Repair | None:
    """A word taken out."""
    change = _removed(word)
    return Repair((change,)) if change else None


def variable_renamed(variable: Variable, new: str, *, safe: bool = True) -> Repair | None:
    """Another name for a variable that nothing else in its document speaks of."""
    node, name = variable.node, variable.name
    if not _only_mention(variable):
        return None
    if variable.word is not None:
        return respelt(variable.word, name, new, safe=safe)
    if not _in_container(variable):
        return None
    if node.text("name") == name:
        return Repair((Set(node.at("name"), new),), safe)
    keyed = node.path[-1] == name
    return Repair((RenameKey(node, new) if keyed else Substitute(node, 0, 0, name, new),), safe)


def without_variable(variable: Variable) -> Repair | None:
    """A variable taken out of a container or service, where nothing else in its document speaks of it."""
    if not _in_container(variable) or not _only_mention(variable):
        return None
    return Repair((Remove(variable.node),))


def variable_value(variable: Variable, new: str) -> Repair | None:
    """Another value for a variable whose value stands as it is where it is named."""
    if not _in_container(variable):
        return None
    for value in (variable.node.at("value"), variable.node):
        if variable.value is not None and value.value == variable.value:
            return Repair((Set(value, new),))
    return None


def variable_set(engine: Engine, name: str, value: str) -> Repair | None:
    """A variable with a value in the container of an engine, be it there already or not; in Kubernetes."""
    if name in engine.variables:
        return variable_value(engine.variables[name], value)
    return _variable_added(engine, {"name": name, "value": value})


def variable_from_field(engine: Engine, name: str, field: str) -> Repair | None:
    """A variable that has its value from a field of the pod; in Kubernetes."""
    entry = {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}
    given = engine.variables.get(name)
    if given is None:
        return _variable_added(engine, entry)
    inside = engine.pod.platform == "kubernetes" and _in_container(given)
    return Repair((Set(given.node, entry),)) if inside else None


def entry_set(node: Node, key: str, value: Any, *, safe: bool = True) -> Repair | None:
    """An entry of a mapping with a value, be it there already or not."""
    given = node.at(key)
    if given:
        return Repair((Set(given, value),), safe)
    fits = isinstance(node.value, dict) and key not in node.value
    return Repair((Add(node, key, value),), safe) if fits else None


def key_respelt(node: Node, key: str) -> Repair:
    """The key that the one of a value resembles."""
    return Repair((RenameKey(node, key),), safe=False)


def json_key_respelt(option: Argument, name: str, near: str) -> Repair | None:
    """The key that one of an option's object resembles, be it written as JSON or after a dot."""
    if option.keys == (name,):
        return respelt(option.word, option.written, option.written.removesuffix(name) + near, safe=False)
    return json_changed(option, (name,), lambda node: RenameKey(node, near), safe=False)


def word_in_text(node: Node, old: str, new: str, *, safe: bool = True) -> Repair | None:
    """Another word in a text, wherever it stands there."""
    changes = [
        Substitute(node, number, match.start(), old, new)
        for number, line in enumerate(node.text().split("\n"))
        for match in re.finditer(rf"(?<![\w:]){re.escape(old)}(?![\w:])", line)
    ]
    return Repair(tuple(changes), safe) if changes else None


def _variable_added(engine: Engine, entry: dict[str, Any]) -> Repair | None:
    if engine.pod.platform != "kubernetes":
        return None
    given = engine.node.at("env")
    return Repair((Add(given, None, entry) if given else Add(engine.node, "env", [entry]),))


def _in_container(variable: Variable) -> bool:
    """Whether a variable stands in the container or service itself, not in a ConfigMap or a command."""
    return variable.word is None and variable.node.path[-2:-1] in (("env",), ("environment",))


def _only_mention(variable: Variable) -> bool:
    return len(re.findall(rf"\b{re.escape(variable.name)}\b", variable.node.document.text)) == 1


def _removed(word: Word) -> Change | None:
    """A word taken out: the item of a list, or the word of a command line."""
    node = word.node
    if node is None:
        return None
    if _is_item(word):
        return Remove(node)
    if _column(word, word.text) != word.column or not word.text:
        return None
    return Substitute(node, word.line, word.column, word.text, lone=True)


def _is_item(word: Word) -> bool:
    """Whether a word is a whole item of a list, with nothing in it that was expanded."""
    node = word.node
    listed = node is not None and node.document.kind != "command" and isinstance(node.path[-1], int)
    return listed and node is not None and node.value == word.text


def _column(word: Word, text: str) -> int | None:
    """Where a text with which a word begins stands in the word's line: there, or behind a quotation mark."""
    if word.node is None:
        return None
    lines = word.node.text().split("\n")
    line = "\n".join(lines[word.line :])
    for column in (word.column, word.column + 1):
        if line.startswith(text, column) and (column == word.column or line[word.column] in "'\""):
            return column
    return None
