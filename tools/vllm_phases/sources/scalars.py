"""Plain scalars as Kubernetes' YAML reader takes them (sigs.k8s.io/yaml over go-yaml v2: resolve.go)."""

from __future__ import annotations

import functools
import math
import re

_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMBER_STARTS = frozenset("0123456789+-.")
_INTEGER = re.compile(r"[-+]?(0[xX][\da-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9]\d*)")
_FLOAT = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?")
_BASES = {"x": 16, "b": 2, "o": 8}
_MAX_DIGITS = 400  # longer ones would be slow to convert, and no reader takes them for a number


@functools.lru_cache(maxsize=65536)
def value(text: str) -> bool | int | float | str | None:
    """What a plain scalar means: a word for null, a boolean or a number, or else the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS or len(text) > _MAX_DIGITS:
        return text
    plain = text.replace("_", "")
    if _INTEGER.fullmatch(plain):
        return _integer(plain)
    return float(plain) if _FLOAT.fullmatch(plain) else text


def key(text: str) -> str:
    """The JSON key that a plain scalar becomes: `on` is "true"."""
    word = _WORDS.get(text)
    return ("true" if word else "false") if isinstance(word, bool) else text


def _integer(plain: str) -> int:
    sign, digits = (-1 if plain[0] == "-" else 1), plain.lstrip("+-").lower()
    if len(digits) > 1 and digits[0] == "0":
        base = _BASES.get(digits[1], 8)
        return sign * int(digits[2:] if digits[1] in _BASES else digits, base)
    return sign * int(digits)
