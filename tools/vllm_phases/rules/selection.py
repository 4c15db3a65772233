"""Which rules run."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vllm_phases.finding import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Selection:
    """Prefixes of rule ids, such as "KV" or "KV001"; nothing selected means every rule.

    A rule runs when the longest prefix that fits it is a selected one, so --select KV --ignore KV003 and
    --ignore KV --select KV001 both do what they say.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def __contains__(self, rule_id: str) -> bool:
        wanted = _fit(rule_id, self.select or ("",))
        unwanted = _fit(rule_id, self.ignore)
        return wanted is not None and (unwanted is None or unwanted < wanted)


def validate(prefixes: Iterable[str], known: Iterable[str], where: str) -> None:
    """UsageError for a prefix that fits no rule."""
    ids = sorted(known)
    for prefix in prefixes:
        if not any(rule_id.startswith(prefix) for rule_id in ids):
            near = difflib.get_close_matches(
                prefix.upper(), [*ids, *{_topic(rule_id) for rule_id in ids}], n=1
            )
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"{where}: {prefix} fits no rule{hint}")


def _fit(rule_id: str, prefixes: tuple[str, ...]) -> int | None:
    """The length of the longest prefix that fits."""
    return max((len(prefix) for prefix in prefixes if rule_id.startswith(prefix)), default=None)


def _topic(rule_id: str) -> str:
    return rule_id.rstrip("0123456789")
