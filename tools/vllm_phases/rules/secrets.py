"""ENV: what a container needs from its environment to fetch a model."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Pod, relations
from vllm_phases.model.command import invocations
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Container, Word

_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH")
_DOWNLOADERS = (("hf", "download"), ("huggingface-cli", "download"))


@rule("ENV004", "gated-model-without-token", Severity.WARNING, scope=Pod)
def gated_model_without_token(pod: Pod, context: Context) -> Iterator[Problem]:
    """A container that fetches a model which the hub gives only to known users, without a token.

    Why:
        The hub answers 401 or 403, and the container restarts for ever. A token on the engine does not help an
        init container that does the download.

    Bad:
        ```yaml
        args: [meta-llama/Llama-3.1-8B-Instruct]
        ```
        ```yaml
        initContainers:
          - {name: fetch, image: "vllm/vllm-openai:v0.30.0", command: [hf, download, google/gemma-3-4b-it]}
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.30.0
            args: [google/gemma-3-4b-it]
            env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}]
        ```

    Good:
        ```yaml
        args: [meta-llama/Llama-3.1-8B-Instruct]
        env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}]
        ```
        ```yaml
        args: [meta-llama/Llama-3.1-8B-Instruct]
        env: [{name: HF_HUB_OFFLINE, value: "1"}]
        ```
        ```yaml
        args: [meta-llama/Llama-3.1-8B-Instruct]
        envFrom: [{secretRef: {name: hub}}]
        ```
        ```yaml
        args: [/models/meta-llama/Llama-3.1-8B-Instruct]
        ```

    References:
        - https://huggingface.co/docs/hub/models-gated
        - https://github.com/kserve/website/issues/482
    """
    fetched = [(container, word) for container in pod.containers for word in _downloads(container)]
    if not fetched and pod.platform != "shell":  # what an init container has fetched, the engine finds
        fetched = [
            (engine.container, next(iter(engine.arguments.positionals)))
            for engine in relations.engines_in(context.release, pod)
            if engine.arguments.positionals and not _may_be_there(engine.container)
        ]
    for container, word in fetched:
        if word.known and _is_gated(word.text, context) and not _has_token(container):
            kind = "init container" if container.init else "container"
            message = f"{word.text} is gated, and {kind} {container.name} has no HF_TOKEN".replace("  ", " ")
            yield Problem(word, message, "Give HF_TOKEN from a Secret.")


def _downloads(container: Container) -> Iterator[Word]:
    """The models that the commands of a container fetch."""
    values = {name: variable.value for name, variable in container.variables.items()}
    for invocation in invocations(container.words, values):
        texts = [word.text.rpartition("/")[2] for word in invocation.words]
        for start, pair in enumerate(pairwise(texts)):
            if pair in _DOWNLOADERS:
                yield from [word for word in invocation.words[start + 2 :] if word.text.count("/") == 1][:1]


def _may_be_there(container: Container) -> bool:
    """Whether the hub's cache lies on a volume, which may have the model already."""
    home = container.value("HF_HOME") or container.value("HF_HUB_CACHE") or "huggingface"
    return any(mount.path in home or home in mount.path for mount in container.mounts if mount.path)


def _is_gated(model: str, context: Context) -> bool:
    facts = context.facts("gated_organisations").values()
    patterns = (pattern for fact in facts for pattern in fact["models"])
    return any(re.fullmatch(pattern, model, re.IGNORECASE) for pattern in patterns)


def _has_token(container: Container) -> bool:
    offline = container.value("HF_HUB_OFFLINE") in ("1", "true", "True", "yes", "on")
    elsewhere = "HF_ENDPOINT" in container.variables or "VLLM_USE_MODELSCOPE" in container.variables
    given = any(name in container.variables for name in _TOKENS)
    return given or offline or elsewhere or not container.complete
