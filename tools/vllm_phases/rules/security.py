"""SEC: what a deployment gives away: secrets in plain text, host access, tokens, moving images, code."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Any

from vllm_phases import catalogue
from vllm_phases.finding import Severity
from vllm_phases.model import Engine, Object, Pod, Release, access, relations
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Container

_MOVING = re.compile(r"latest(-.*)?|nightly(-.*)?|main|master|dev|edge|")
_WHOLE_RELEASE = re.compile(r"\d+\.\d+\.\d+|[0-9a-f]{12,}|\d{8}")
_HOLE = re.compile(r"\{\{|\$|<")
_MIN_TEXT = 12  # no shorter text is a token


@rule("SEC001", "secret-in-plain-text", Severity.WARNING, scope=Pod)
def secret_in_plain_text(pod: Pod, context: Context) -> Iterator[Problem]:
    """A token or key that stands in the manifest itself.

    Why:
        Whoever may read pods, the repository or the process list has it, and it stays in their history.

    Bad:
        ```yaml
        env: [{name: HF_TOKEN, value: hf_abcdefghijklmnopqrstuvwxyz0123}]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --api-key=correct-horse-battery]
        ```
        ```sh
        docker run -e VLLM_API_KEY=correct-horse-battery vllm/vllm-openai:v0.33.0 Qwen/Qwen3-8B
        ```

    Good:
        ```yaml
        env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}]
        args: [Qwen/Qwen3-8B, --served-model-name=sk-8b]
        ```
        ```yaml
        env: [{name: OPENAI_API_KEY, value: EMPTY}]
        ```

    References:
        - https://kubernetes.io/docs/concepts/configuration/secret/
        - https://github.com/vllm-project/production-stack/issues/14
    """
    for container in pod.containers:
        for name, variable in container.variables.items():
            if variable.source == "value" and (what := _secret(name, variable.value)):
                yield Problem(variable, f"{name} holds {what} in plain text", _FROM_SECRET)
        for word in container.words:
            if what := _secret("", word.text):
                yield Problem(word, f"an argument holds {what} in plain text", _FROM_SECRET)
    for engine in relations.engines_in(context.release, pod):
        option = engine.arguments.last("api-key")
        if option is not None and _is_plain_key(engine, option.value):
            fix = "Set VLLM_API_KEY from a Secret in place of --api-key."
            yield Problem(option, "--api-key holds a key in plain text", fix)


@rule("SEC002", "secret-in-config-map", Severity.WARNING, scope=Object)
def secret_in_config_map(found: Object, context: Context) -> Iterator[Problem]:
    """A token or key in a ConfigMap.

    Why:
        ConfigMaps are readable by everyone who may read the namespace, and are not encrypted at rest.

    Bad:
        ```yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {HF_TOKEN: hf_abcdefghijklmnopqrstuvwxyz0123}
        ```

    Good:
        ```yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {HF_HOME: /models, VLLM_API_KEY: ""}
        ```

    References:
        - https://kubernetes.io/docs/concepts/configuration/configmap/
    """
    if found.kind != "ConfigMap":
        return
    for key, node in found.node.entries("data"):
        if what := _secret(key, node.text()):
            yield Problem(node, f"{key} holds {what}", "Move it into a Secret.")


@rule("SEC003", "moving-image", Severity.WARNING, scope=Pod)
def moving_image(pod: Pod, context: Context) -> Iterator[Problem]:
    """An image whose tag means another build tomorrow.

    Why:
        Two pods of one Deployment may then run two vLLM releases, which refuse each other's KV cache, and a
        restart may bring a release that refuses the flags.

    Bad:
        ```yaml
        image: vllm/vllm-openai:latest
        ```
        ```compose
        services:
          engine: {image: vllm/vllm-openai, command: Qwen/Qwen3-8B}
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.33.0
        ```
        ```yaml
        image: vllm/vllm-openai:latest@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
        ```
        ```compose
        services:
          engine: {image: ours, build: ., command: vllm serve Qwen/Qwen3-8B}
        ```

    References:
        - https://kubernetes.io/docs/concepts/containers/images/#image-names
    """
    for container in _known_images(pod, context):
        image = container.image
        if not image.digest and _MOVING.fullmatch(image.tag):
            tag = f"tag {image.tag}" if image.tag else "no tag, which means latest"
            message = f"image {image.path} has {tag}: what runs changes by itself"
            yield Problem(image, message, "Give the tag of a release, and its digest.")


@rule("SEC004", "image-without-digest", Severity.NOTE, scope=Pod)
def image_without_digest(pod: Pod, context: Context) -> Iterator[Problem]:
    """An image whose tag names no whole release, without a digest.

    Why:
        A tag such as v0.33 or cu130 is pushed again with each release: a restart may bring another one. A
        digest names one build for ever. (A whole release as tag is passed over.)

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.33
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.33@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
        ```
        ```yaml
        image: vllm/vllm-openai:v0.33.0-cu129
        ```

    References:
        - https://kubernetes.io/docs/concepts/containers/images/#image-names
    """
    for container in _known_images(pod, context):
        image = container.image
        if not image.digest and not _MOVING.fullmatch(image.tag) and not _WHOLE_RELEASE.search(image.tag):
            message = f"tag {image.tag} of image {image.path} names no whole release, and there is no digest"
            yield Problem(image, message, "Give the tag of a release, or add @sha256:… of a build.")


@rule("SEC005", "host-access", Severity.WARNING, scope=Pod)
def host_access(pod: Pod, context: Context) -> Iterator[Problem]:
    """A pod of an engine, router or picker that is privileged or sees the processes or memory of its host.

    Why:
        Whoever gets into the server owns the node, with every model and token on it. vLLM needs neither:
        /dev/shm is a Memory volume, and RDMA needs IPC_LOCK and a device plugin.

    Bad:
        ```yaml
        hostIPC: true
        containers: [{name: vllm, image: "vllm/vllm-openai:v0.33.0", args: [Qwen/Qwen3-8B]}]
        ```
        ```yaml
        securityContext: {privileged: true}
        ```
        ```sh
        docker run --gpus all --privileged vllm/vllm-openai:v0.33.0 Qwen/Qwen3-8B
        ```

    Good:
        ```yaml
        securityContext: {privileged: false, capabilities: {add: [IPC_LOCK]}}
        ```
        ```sh
        docker run --gpus all --ipc=host vllm/vllm-openai:v0.33.0 Qwen/Qwen3-8B
        ```

    References:
        - https://kubernetes.io/docs/concepts/security/pod-security-standards/
        - https://github.com/LMCache/LMCache/issues/4394
    """
    if _is_ours(pod, context):
        for where, what in _host_access(pod):
            fix = f"Remove {what}." if what != "privileged" else "Remove privileged; add single capabilities."
            yield Problem(where, f"{what} opens the host to the pod", fix)


@rule("SEC006", "engine-with-api-token", Severity.NOTE, scope=Pod)
def engine_with_api_token(pod: Pod, context: Context) -> Iterator[Problem]:
    """An engine's pod that gets a token of the Kubernetes API, which vLLM never uses.

    Why:
        A request that makes the engine run code then speaks to the API with that account. Where the account
        may do something, this is a warning.

    Bad:
        ```yaml
        containers: [{name: vllm, image: "vllm/vllm-openai:v0.33.0", args: [Qwen/Qwen3-8B]}]
        ```

    Good:
        ```yaml
        automountServiceAccountToken: false
        containers: [{name: vllm, image: "vllm/vllm-openai:v0.33.0", args: [Qwen/Qwen3-8B]}]
        ```

    References:
        - https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/
    """
    engines = relations.engines_in(context.release, pod)
    if pod.platform != "kubernetes" or not engines or len(engines) < len(pod.containers):
        return  # a sidecar may need it
    account = context.release.find("ServiceAccount", access.service_account(pod), pod.namespace)
    given = pod.spec.at("automountServiceAccountToken")
    if not given and account is not None:
        given = account.node.at("automountServiceAccountToken")
    if given.value is not False:
        granted = bool(access.grants(context.release, pod))
        message = "the engine gets a token of the Kubernetes API, and its account has roles"
        if not granted:
            message = "the engine gets a token of the Kubernetes API, which it does not use"
        fix = "Set automountServiceAccountToken: false."
        yield Problem(pod.spec, message, fix, Severity.WARNING if granted else None)


@rule("SEC007", "open-switch", Severity.WARNING, scope=Engine)
def open_switch(engine: Engine, context: Context) -> Iterator[Problem]:
    """A variable that opens the engine to whoever reaches it.

    Why:
        VLLM_SERVER_DEV_MODE, for one, adds routes without authentication that call any function of the engine.

    Bad:
        ```yaml
        env: [{name: VLLM_SERVER_DEV_MODE, value: "1"}]
        ```

    Good:
        ```yaml
        env: [{name: VLLM_SERVER_DEV_MODE, value: "0"}]
        ```

    References:
        - https://docs.vllm.ai/en/latest/usage/security.html
    """
    for name, fact in context.facts("security").items():
        if engine.variable(name) in fact.get("values", ()):
            message = f"{name}={engine.variable(name)} {fact['what']}"
            yield Problem(
                engine.variables[name], message, f"Remove {name}, or keep the pod closed to clients."
            )


@rule("SEC008", "media-from-anywhere", Severity.WARNING, scope=Engine)
def media_from_anywhere(engine: Engine, context: Context) -> Iterator[Problem]:
    """A multimodal model whose engine fetches pictures from any address, or any file, that a client names.

    Why:
        A client has the engine read from addresses inside the cluster (metadata services, other engines), or
        from its own file system.

    Bad:
        ```yaml
        args: [Qwen/Qwen2.5-VL-7B-Instruct, --port=8000]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --allowed-local-media-path=/]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen2.5-VL-7B-Instruct, --allowed-media-domains, images.example.net]
        ```
        ```yaml
        args: [Qwen/Qwen2.5-VL-7B-Instruct, '--limit-mm-per-prompt={"image":0,"video":0}']
        ```

    References:
        - https://docs.vllm.ai/en/latest/usage/security.html (--allowed-media-domains)
    """
    arguments = engine.arguments
    option = arguments.last("allowed-local-media-path")
    if option is not None and option.value == "/":
        fix = "Give the folder that holds the media."
        yield Problem(option, "clients may have the engine read any file of its container", fix)
    facts = context.facts("security")["multimodal"]
    closed = {"allowed-media-domains", "limit-mm-per-prompt", "language-model-only", "config"}
    if arguments.open or any(name in arguments for name in closed):
        return
    if engine.release and re.search(facts["models"], engine.model or ""):
        where = next(iter(arguments.positionals), engine.container)
        message = f"{engine.model} takes media, and clients may have the engine fetch them from any address"
        yield Problem(
            where, message, "Give --allowed-media-domains with the domains that may be fetched from."
        )


@rule("SEC009", "credentials-for-any-origin", Severity.WARNING, scope=Engine)
def credentials_for_any_origin(engine: Engine, context: Context) -> Iterator[Problem]:
    """Cross-origin requests with credentials from any website.

    Why:
        A page that a user visits may then use the model with the user's own session.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --allow-credentials, '--allowed-origins=["*"]']
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --allow-credentials, '--allowed-origins=["https://chat.example.net"]']
        ```

    References:
        - https://developer.mozilla.org/docs/Web/HTTP/Guides/CORS
    """
    option = engine.arguments.last("allow-credentials")
    if option is None or not engine.arguments.truth("allow-credentials") or engine.release is None:
        return
    origins = _list(engine.arguments.text("allowed-origins"))
    if "allowed-origins" not in engine.arguments and not engine.arguments.open:
        origins = engine.release.flags["--allowed-origins"].default
    if isinstance(origins, list) and "*" in origins:
        fix = "Name the origins in --allowed-origins."
        yield Problem(option, "--allow-credentials is given while any origin is allowed", fix)


@rule("SEC010", "unpinned-remote-code", Severity.WARNING, scope=Engine)
def unpinned_remote_code(engine: Engine, context: Context) -> Iterator[Problem]:
    """Code of a model's repository is run, whatever it is at the time.

    Why:
        --trust-remote-code runs Python from the hub with everything the pod may do; without a revision a
        change there is run at the next start.

    Bad:
        ```yaml
        args: [example/odd-model, --trust-remote-code]
        ```

    Good:
        ```yaml
        args: [example/odd-model, --trust-remote-code, --revision=0123456789abcdef0123456789abcdef01234567]
        ```
        ```yaml
        args: [/models/odd-model, --trust-remote-code]
        ```

    References:
        - https://docs.vllm.ai/en/latest/usage/security.html
    """
    arguments, model = engine.arguments, engine.model
    option = arguments.last("trust-remote-code")
    if option is None or not arguments.truth("trust-remote-code") or arguments.open or not model:
        return
    pinned = "revision" in arguments or "code-revision" in arguments or "config" in arguments
    if not pinned and re.fullmatch(r"[\w.-]+/[\w.-]+", model) and engine.variable("HF_HUB_OFFLINE") != "1":
        fix = "Pin --revision (and --code-revision) to a commit."
        yield Problem(option, f"code of {model} is run at whatever revision the hub has", fix)


_FROM_SECRET = (
    "Take it from a Secret with valueFrom.secretKeyRef (docker: from a file or the host's variable)."
)


@functools.lru_cache(maxsize=4096)
def _secret(name: str, text: str | None) -> str | None:
    """What kind of secret a text is, by its form or by the name of the variable."""
    facts = catalogue.facts("security")
    if text is None or _HOLE.search(text):
        return None
    if name and re.fullmatch(facts["secretNames"]["names"], name):
        return None if text in facts["secretNames"]["placeholders"] else "a secret"
    if len(text) < _MIN_TEXT:
        return None
    for fact in facts.values():
        if "secret" in fact and re.fullmatch(rf"(.*[\s=:])?{fact['secret']}", text, re.DOTALL):
            return str(fact["what"])
    return None


def _is_plain_key(engine: Engine, value: str | None) -> bool:
    """Whether a value is a key that is not told already: by its form, or where a variable holds it."""
    of_variables = (variable.value for variable in engine.variables.values())
    return bool(value) and value not in of_variables and not _secret("", value)


def _is_ours(pod: Pod, context: Context) -> bool:
    """Whether a pod has an engine or something beside one."""
    return id(pod) in _ours(context.release)


@functools.lru_cache(maxsize=4)
def _ours(release: Release) -> frozenset[int]:
    pods = (*(engine.pod for engine in release.engines), *(part.pod for part in release.components))
    return frozenset(id(pod) for pod in pods)


def _known_images(pod: Pod, context: Context) -> Iterator[Container]:
    """Containers of our pods whose image reference is known, and not built here."""
    for container in pod.containers if _is_ours(pod, context) else ():
        if container.image.path and not _HOLE.search(container.image.text) and not container.node.at("build"):
            yield container


def _host_access(pod: Pod) -> Iterator[tuple[Any, str]]:
    for field in ("hostIPC", "hostPID") if pod.platform == "kubernetes" else ():
        if pod.spec.at(field).value is True:
            yield pod.spec.at(field), field
    for container in pod.containers:
        node = container.node
        if node.at("securityContext", "privileged").value is True:
            yield node.at("securityContext", "privileged"), "privileged"
        if pod.platform == "compose" and node.at("privileged").value is True:
            yield node.at("privileged"), "privileged"
        if pod.platform == "compose" and node.text("pid") == "host":
            yield node.at("pid"), "pid: host"
        if container.options is not None and (option := container.options.last("privileged")) is not None:
            yield option, "privileged"


def _list(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
