"""How Kubernetes spells names, labels and quantities.

Sources: Kubernetes 1.37, k8s.io/apimachinery/pkg/api/validate/content, pkg/util/validation and
pkg/api/resource/quantity.go; which kind takes which name: pkg/apis/*/validation.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from decimal import Decimal

_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"


@dataclass(frozen=True)
class Format:
    """A way to spell a name; longest is its greatest number of characters, words describe it to a user."""

    pattern: str
    longest: int
    words: str

    @functools.lru_cache(maxsize=4096)  # noqa: B019  # the formats stand in this file and live for ever
    def fits(self, text: str) -> bool:
        """Whether a text is spelt so."""
        return len(text) <= self.longest and re.fullmatch(self.pattern, text) is not None

    def __str__(self) -> str:
        return f"{self.words}, at most {self.longest} characters"


FORMATS = {
    "DNS-1123 label": Format(_LABEL, 63, "lower case letters, digits and inner dashes"),
    "DNS-1123 subdomain": Format(
        rf"{_LABEL}(?:\.{_LABEL})*", 253, "lower case letters, digits, inner dashes and dots"
    ),
    "DNS-1035 label": Format(
        "[a-z](?:[-a-z0-9]*[a-z0-9])?", 63, "lower case letters, digits and inner dashes, a letter first"
    ),
    "CronJob name": Format(
        rf"{_LABEL}(?:\.{_LABEL})*", 52, "lower case letters, digits, inner dashes and dots"
    ),
    "path segment": Format(r"(?!\.{1,2}$)[^/%]+", 2**16, 'neither "/" nor "%"'),
    "port name": Format(
        "|(?=.*[a-z])(?!.*--)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?",
        15,
        "lower case letters, digits and single inner dashes, at least one letter",
    ),
    "Service port name": Format(f"(?:{_LABEL})?", 63, "lower case letters, digits and inner dashes"),
    "label value": Format(f"(?:{_QUALIFIED})?", 63, "letters, digits and inner dashes, underscores and dots"),
}

_NAMES = {
    **dict.fromkeys(("Namespace", "Service", "StatefulSet"), "DNS-1123 label"),
    **dict.fromkeys(("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"), "path segment"),
    **dict.fromkeys(("APIService", "IPAddress"), "path segment"),
    "CronJob": "CronJob name",
}

_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,3}))?"
)
_UNITS = {
    **dict(zip("num", (Decimal(1000) ** power for power in (-3, -2, -1)), strict=True)),
    **dict(zip("kMGTPE", (Decimal(1000) ** power for power in range(1, 7)), strict=True)),
    **{f"{prefix}i": Decimal(1024) ** power for power, prefix in enumerate("KMGTPE", 1)},
}


def name_format(kind: str, minor: str) -> str:
    """The key in FORMATS of the names that a Kubernetes minor version takes for a kind of object."""
    if kind == "Service" and int(minor.partition(".")[2]) < 36:
        return "DNS-1035 label"  # 1.36 turned on the feature gate RelaxedServiceNameValidation (KEP-5311)
    return _NAMES.get(kind, "DNS-1123 subdomain")


@functools.lru_cache(maxsize=4096)
def is_label_key(text: str) -> bool:
    """Whether a text can be the key of a label: a name of 63 characters, behind an optional DNS subdomain."""
    prefix, slash, name = text.rpartition("/")
    domain = not slash or FORMATS["DNS-1123 subdomain"].fits(prefix)
    return domain and name != "" and FORMATS["label value"].fits(name)


def amount(quantity: object) -> Decimal | None:
    """A quantity such as 500m, "16Gi", 0.5 or 1e3 in its base unit; None where it is none.

    Exponents of more than three digits, which Kubernetes caps, count as none.
    """
    return _amount(str(quantity).strip())


@functools.lru_cache(maxsize=4096)
def _amount(text: str) -> Decimal | None:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    number, unit, exponent = match.groups()
    return Decimal(number) * (_UNITS[unit] if unit else Decimal(f"1e{exponent or 0}"))
