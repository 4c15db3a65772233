"""What a failed keyword of a schema means to the user, in words."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from jsonschema_rs import ValidationErrorKind as Kind

from vllm_phases.objects.refusals import Refusal, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jsonschema_rs import ValidationError

    from vllm_phases.yaml_document import KeyPath

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_END = 100


def dotted(path: KeyPath) -> str:
    """A path in an object, such as spec.containers[0].resources.limits["nvidia.com/gpu"]."""
    parts = (f".{key}" if _PLAIN.fullmatch(str(key)) else f"[{quoted(key)}]" for key in path)
    return "".join(parts).removeprefix(".")


def refusals(error: ValidationError, schema: Mapping[str, Any]) -> Iterator[Refusal]:
    """The reasons that an error stands for, by paths from its place; schema is the keyword's."""
    match error.kind:
        case Kind.AdditionalProperties(unexpected=names):
            for name in names:
                yield Refusal((name,), _unknown(name, list(schema.get("properties", ()))))
        case Kind.Required(property=name):
            yield Refusal((name,), "missing, but required")
        case Kind.Type(types=types):
            given = error.message.rpartition(" is not of type")[0]
            wanted = " or ".join(name for name in types if name != "null")
            yield Refusal((), f"{_short(given)} is not {'an' if wanted[0] in 'aio' else 'a'} {wanted}")
        case Kind.Enum(options=options):
            given = error.message.partition(" is not one of ")[0]
            wanted = ", ".join(quoted(option) for option in options if option is not None)
            yield Refusal((), f"{_short(given)} is not one of {wanted}")
        case _:
            yield Refusal((), _short(error.message))


def _unknown(name: str, known: list[str]) -> str:
    """What to say of a field that is not one of the known ones."""
    allowed = f"allowed are {', '.join(sorted(known))}" if known else "none is allowed"
    return f"unknown field, {nearest(name, known) or allowed}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The question for the known name that is most like a name, "" if none is like it."""
    return next((f'did you mean "{match}"?' for match in get_close_matches(name, known, 1)), "")


def _short(text: str) -> str:
    """A text without its middle where it is long: a value stands before the reason, and may fill a page."""
    return text if len(text) <= 2 * _END else f"{text[:_END]} … {text[-_END:]}"
