"""Whether a pattern is one that every reader of the schema understands.

Helm compiles patterns with Go's regexp, which has RE2's syntax, and one pattern that it cannot compile makes
the whole schema invalid. Editors and our own validator have other engines; allowed is what all share.
"""

from __future__ import annotations

import re
import warnings

_REPEAT_LIMIT = 1000
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_KNOWN_ESCAPE = re.compile(r"[dDwWsSbBtnrfv.^$|()\[\]{}*+?/\\-]")
_CLASS = re.compile(r"\[[^\]]*\]?")
_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
# What only some engines know, once escapes, classes and bounds of repetitions are out of the way.
_FOREIGN = {
    r"\(\?<?[=!]": "looks around",
    r"\(\?(?!:)": "has a group that is neither plain nor (?:…)",
    r"[*+?]\+": "has a possessive quantifier",
    r"[{}]": "has a brace that is no repetition; escape it",
    r"\]": "has a ] outside of a class; escape it",
}


def problem(pattern: str) -> str:
    """Say what some reader of the schema would refuse in a pattern, or nothing."""
    for escape in _ESCAPE.findall(pattern):
        if escape.isdigit():
            return "refers back to a group"
        if not _KNOWN_ESCAPE.fullmatch(escape):
            return f"has an escape that not every engine knows (\\{escape})"
    unescaped = _ESCAPE.sub("_", pattern)
    if any("[" in members[1:] or members in ("[]", "[^]") for members in _CLASS.findall(unescaped)):
        return "has a class with a bracket in it; escape it"
    plain = _CLASS.sub("_", unescaped)
    if any(int(bound or 0) > _REPEAT_LIMIT for bounds in _REPEAT.findall(plain) for bound in bounds):
        return f"repeats more than {_REPEAT_LIMIT} times"
    plain = _REPEAT.sub("*", plain)
    return next((name for foreign, name in _FOREIGN.items() if re.search(foreign, plain)), _syntax(pattern))


def _syntax(pattern: str) -> str:
    """What Python says of a pattern, which refuses more than RE2 in what is left."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern)
    except (re.error, Warning) as error:
        return f"is no valid expression ({error})"
    return ""
