"""What a rule is: one pure function whose docstring is its documentation.

@rule("KV001", "unknown-connector", Severity.ERROR, scope=Engine)
def unknown_connector(engine: Engine, context: Context) -> Iterator[Problem]:
    \"""One sentence: what is wrong.

    Why:
    Bad:
    Good:
    References:
    \"""
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vllm_phases import catalogue
from vllm_phases.catalogue.store import sort_key
from vllm_phases.model import Argument, Engine, Key, Node, Release, Variable, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from vllm_phases.finding import Location, Severity
    from vllm_phases.sources.repair import Repair

_S = TypeVar("_S")
SECTIONS = ("Why", "Bad", "Good", "References")
_ID = re.compile(r"[A-Z]+\d{3}")
_SECTION = re.compile(rf"^({'|'.join(SECTIONS)}):[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Placed(Protocol):
    """A part of the model that was read from one node."""

    @property
    def node(self) -> Node | None:
        """The value it was read from."""


@dataclass(frozen=True)
class Problem:
    """What a rule found.

    where        the value to change: a node, an argument, a key in its JSON, a variable, or any part of the model
    message      where, what was given and why it is wrong, in one sentence without a full stop
    remediation  what to set, as a sentence
    severity     another one than the rule's, where this case weighs less or more
    repair       what `lint --fix` may do about it
    """

    where: Node | Word | Argument | Key | Placed
    message: str
    remediation: str = ""
    severity: Severity | None = None
    repair: Repair | None = None

    @property
    def node(self) -> Node | None:
        """The value of a document that it is about."""
        where = self._anchor
        return where if isinstance(where, Node) else where.node

    @property
    def location(self) -> Location | None:
        """The place to show."""
        if isinstance(self._anchor, Word | Key):
            return self._anchor.location
        return self.node.location if self.node is not None else None

    @property
    def start(self) -> Location | None:
        """Where the option around a key of its JSON begins; None for anything else."""
        if not isinstance(self.where, Key):
            return None
        word = self.where.argument.word
        alone = word.node is not None and (word.line, word.column) == (0, 0)
        return word.node.location if word.node is not None and alone else word.location

    @property
    def _anchor(self) -> Node | Word | Placed:
        """What stands in the file: of options, variables and engines of command lines, their word."""
        if isinstance(self.where, Argument):
            return self.where.word
        if isinstance(self.where, Variable):
            return self.where.word or self.where
        if isinstance(self.where, Engine) and self.where.pod.platform in ("shell", "docker"):
            return self.where.start or self.where
        return self.where


@dataclass(frozen=True)
class Context:
    """What rules may look at beside their subject."""

    release: Release
    kube_version: str

    @property
    def deployments(self) -> tuple[Context, ...]:
        """One for each deployment that the documents hold."""
        return tuple(Context(release, self.kube_version) for release in self.release.deployments)

    @staticmethod
    def facts(name: str) -> Mapping[str, Mapping[str, Any]]:
        """A hand-written file of the catalogue by its name, "features" for catalogue/data/features.yaml."""
        return catalogue.facts(name)


class Elsewhere:
    """The scope of what is told before or after the rules run; its function only documents it."""


@dataclass(frozen=True)
class Example:
    """An executed example; language is "yaml", "compose" or "sh"."""

    language: str
    text: str


@dataclass(frozen=True)
class Rule:
    """A rule; since and until bound the vLLM releases that it looks at, until being the first it leaves out.

    versioned  whether it needs to know the engine's release
    fix        what `lint --fix` does about it, as a sentence; "" where nothing
    whole      whether it looks at all that was given at once, not at each deployment in it
    """

    id: str
    name: str
    severity: Severity
    scope: type
    check: Callable[[Any, Context], Iterator[Problem]]
    since: str | None
    until: str | None
    versioned: bool
    fix: str = ""
    whole: bool = False

    def applies(self, subject: object) -> bool:
        """Whether a subject is of a release that the rule is about."""
        if not self.versioned:
            return True
        release = subject.release if isinstance(subject, Engine) else None
        if release is None:
            return False
        here = _order(release.version)
        after = self.since is None or here >= _order(self.since)
        return after and (self.until is None or here < _order(self.until))

    @property
    def topic(self) -> str:
        """The letters of its id."""
        return self.id.rstrip("0123456789")

    @functools.cached_property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return " ".join(_SECTION.split(self._documentation, maxsplit=1)[0].split())

    @functools.cached_property
    def sections(self) -> dict[str, str]:
        """The text of each section of its documentation."""
        _, *rest = _SECTION.split(self._documentation)
        return {title: text.strip("\n") for title, text in zip(rest[::2], rest[1::2], strict=True)}

    def examples(self, section: str) -> tuple[Example, ...]:
        """The fenced blocks of "Bad" or "Good"."""
        text = textwrap.dedent(self.sections.get(section, "")) + "\n"
        return tuple(Example(*found) for found in _FENCE.findall(text))

    @property
    def markdown(self) -> str:
        """Its whole documentation, as `explain` and docs/rules.md show it."""
        sections = (f"**{title}**\n\n{textwrap.dedent(text)}" for title, text in self.sections.items())
        return "\n\n".join((self.summary, *sections))

    @property
    def _documentation(self) -> str:
        return inspect.getdoc(self.check) or ""


_order = functools.lru_cache(maxsize=None)(sort_key)
_RULES: dict[str, Rule] = {}


def rule(  # noqa: PLR0913  # each is named at the call
    rule_id: str,
    name: str,
    severity: Severity,
    *,
    scope: type[_S],
    since: str | None = None,
    until: str | None = None,
    versioned: bool = False,
    fix: str = "",
    whole: bool = False,
) -> Callable[[Callable[[_S, Context], Iterator[Problem]]], Callable[[_S, Context], Iterator[Problem]]]:
    """Make a function a rule. Bounds of vLLM releases are for rules whose scope is Engine."""
    if not _ID.fullmatch(rule_id) or rule_id in _RULES:
        raise ValueError(f"rule id {rule_id} is malformed or taken")

    def register(
        check: Callable[[_S, Context], Iterator[Problem]],
    ) -> Callable[[_S, Context], Iterator[Problem]]:
        bounded = versioned or since is not None or until is not None
        _RULES[rule_id] = Rule(rule_id, name, severity, scope, check, since, until, bounded, fix, whole)
        return check

    return register


def registered() -> tuple[Rule, ...]:
    """The rules that have been imported, by id."""
    return tuple(_RULES[rule_id] for rule_id in sorted(_RULES))


def subjects(release: Release, scope: type) -> Iterable[object]:
    """What a rule of a scope looks at: every part of a release that is of that kind."""
    from vllm_phases import model

    parts: dict[type, Callable[[], Iterable[object]]] = {
        Elsewhere: lambda: (),
        model.Release: lambda: (release,),
        model.Document: lambda: release.documents,
        model.Object: lambda: release.objects,
        model.Pod: lambda: release.pods,
        model.Engine: lambda: release.engines,
        model.Component: lambda: release.components,
        model.Router: lambda: release.routers,
        model.Sidecar: lambda: release.sidecars,
        model.Picker: lambda: release.pickers,
        model.PickerConfig: lambda: release.picker_configs,
        model.Pool: lambda: release.pools,
        model.Service: lambda: release.services,
        model.Route: lambda: release.routes,
        model.Autoscaler: lambda: release.autoscalers,
        model.Monitor: lambda: release.monitors,
        model.Policy: lambda: release.policies,
    }
    return parts[scope]()
