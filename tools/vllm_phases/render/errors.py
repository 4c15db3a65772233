"""Turns Helm's error texts into RenderError: the cause alone, and the place apart from it."""

from __future__ import annotations

import re

from vllm_phases.render import RenderError

# How Helm 3.18 and newer, Helm 4 and its library tell where a template failed.
_PLACE = r"(?P<template>[^\s:()]+)(?::(?P<line>\d+))?(?::(?P<column>\d+))?"
_REFUSAL = re.compile(rf"(?:execution|parse) error at \({_PLACE}\): ")  # fail, required; a broken template
_BROKEN_YAML = re.compile(
    rf"YAML parse error on {_PLACE}: (?:error converting YAML to JSON: yaml: (?P<reason>.*))?"
)
_FRAME = re.compile(rf'{_PLACE}:?\s+executing "[^"]*" at (?P<expression><.*?>):\s+')  # innermost comes last
_YAML_LINE = re.compile(r"line (\d+): ")
NOT_A_MAPPING = "it is not a mapping"
_ADVICE = "\n\nUse --debug flag"


def render_error(text: str) -> RenderError:
    """The RenderError for what Helm printed or returned."""
    text = text.split(_ADVICE, maxsplit=1)[0].strip()
    text = text[text.rfind("\nError: ") + 1 :].removeprefix("Error: ")
    if match := _REFUSAL.search(text):
        return _at(match, text[match.end() :])
    if match := _BROKEN_YAML.search(text):
        return broken_manifest(match["template"], 1, match["reason"] or NOT_A_MAPPING)
    if frames := list(_FRAME.finditer(text)):
        return _at(frames[-1], f"{frames[-1]['expression']}: {text[frames[-1].end() :]}")
    return RenderError(text)


def broken_manifest(template: str, line: int, detail: str) -> RenderError:
    """The error for a document, from `line` of what the template rendered, that YAML readers refuse."""
    within = _YAML_LINE.match(detail)
    return RenderError(
        f"the template renders what is not a Kubernetes object: {_YAML_LINE.sub('', detail)}",
        template=template,
        line=line + int(within[1]) - 1 if within else line,
        column=1,
    )


def _at(match: re.Match[str], message: str) -> RenderError:
    line, column = int(match["line"] or 1), int(match["column"] or 1)
    return RenderError(message.strip(), template=match["template"], line=line, column=column)
