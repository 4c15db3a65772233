"""RUN: the user that an engine runs as, its home and its caches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vllm_phases.catalogue.store import sort_key
from vllm_phases.finding import Severity
from vllm_phases.model import Engine
from vllm_phases.model.engine import is_engine_image
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import Node

_HOME = re.compile(r"(/root|/home/vllm)/\.(cache|triton|config)(/.*)?")
_READ_ONLY_VOLUMES = ("configMap", "secret", "projected", "downwardAPI", "image")
_HUB, _LOCAL = "HF_HOME", ("/", ".", "~")


@rule("RUN026", "uid-without-name", Severity.ERROR, scope=Engine, since="0.22.0", until="0.27.0")
def uid_without_name(engine: Engine, context: Context) -> Iterator[Problem]:
    """A user id that the image does not know, without USER.

    Why:
        torch asks for the user's name while it is imported: "getpwuid(): uid not found", before a single
        argument is read. torch 2.13, of vLLM 0.27, does without.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.25.1
        securityContext: {runAsUser: 10001}
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.25.1
        securityContext: {runAsUser: 2000, runAsGroup: 0}
        ```
        ```yaml
        image: vllm/vllm-openai:v0.25.1
        securityContext: {runAsUser: 10001}
        env: [{name: USER, value: vllm}, {name: HOME, value: /home/vllm}]
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/44548
        - https://github.com/vllm-project/vllm/issues/46734
        - https://github.com/ai-dynamo/dynamo/issues/12457
    """
    user = _stranger(engine, context)
    names = context.facts("image_users")["asksForName"]["variables"]
    if user is None or not engine.container.complete or any(name in engine.variables for name in names):
        return
    uid, node = user
    unset = "USER is not" if "HOME" in engine.variables else "neither USER nor HOME is"
    message = f"user {uid} has no name in the image, and {unset} set: torch fails while it is imported"
    yield Problem(node, message, "Set runAsUser: 2000 and runAsGroup: 0, or the variables USER and HOME.")


@rule("RUN027", "home-not-writable", Severity.WARNING, scope=Engine)
def home_not_writable(engine: Engine, context: Context) -> Iterator[Problem]:
    """A user id that the image does not know, without HOME and with caches left where they are by default.

    Why:
        HOME is then "/", in which only root may write: "Permission denied: '/.cache'".

    Bad:
        ```yaml
        securityContext: {runAsUser: 10001}
        env: [{name: USER, value: vllm}]
        ```

    Good:
        ```yaml
        securityContext: {runAsUser: 10001}
        env: [{name: USER, value: vllm}, {name: HOME, value: /cache}]
        ```
        ```yaml
        securityContext: {runAsUser: 2000}
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/38552
        - https://github.com/llm-d/llm-d/issues/1430
    """
    user = _stranger(engine, context)
    if user is None or not engine.container.complete or "HOME" in engine.variables:
        return
    left = [name for name, path in _places(context).items() if not _moved(engine, name, path)]
    if left:
        message = (
            f"user {user[0]} has no home in the image, and HOME is not set: caches go to /, which is root's"
        )
        fix = f"Set HOME to a folder that it may write, or {', '.join(left)}."
        yield Problem(user[1], message, fix)


@rule("RUN028", "image-user-is-root", Severity.WARNING, scope=Engine)
def image_user_is_root(engine: Engine, context: Context) -> Iterator[Problem]:
    """runAsNonRoot without a user, for an image whose user is root.

    Why:
        "container has runAsNonRoot and image will run as root": the container is not created, unless the
        cluster gives it a user, as OpenShift does. Who sets USER and HOME expects that.

    Bad:
        ```yaml
        securityContext: {runAsNonRoot: true}
        ```

    Good:
        ```yaml
        securityContext: {runAsNonRoot: true, runAsUser: 2000, runAsGroup: 0}
        ```
        ```yaml
        env: [{name: USER, value: vllm}, {name: HOME, value: /home/vllm}]
        securityContext: {runAsNonRoot: true}
        ```

    References:
        - vllm 0.33.0, docker/Dockerfile
        - https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
    """
    asked = engine.pod.security("runAsNonRoot", engine.container)
    named = engine.pod.security("runAsUser", engine.container)
    assigned = {"USER", "HOME"} <= engine.variables.keys()
    if assigned or engine.pod.platform != "kubernetes":
        return
    if asked.value is True and not named and _official(engine):
        message = (
            f"runAsNonRoot is set without runAsUser, but image {engine.container.image.name} runs as root"
        )
        yield Problem(asked, message, "Set runAsUser: 2000 and runAsGroup: 0 (from vLLM 0.22 on).")


@rule("RUN029", "cache-in-other-home", Severity.WARNING, scope=Engine)
def cache_in_other_home(engine: Engine, context: Context) -> Iterator[Problem]:
    """A volume for caches in the home of another user than the engine's.

    Why:
        The engine never looks there: it downloads the model at every start, into the container.

    Bad:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            securityContext: {runAsUser: 2000, runAsGroup: 0}
            volumeMounts: [{name: cache, mountPath: /root/.cache/huggingface}]
        volumes: [{name: cache, emptyDir: {}}]
        ```

    Good:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            securityContext: {runAsUser: 2000, runAsGroup: 0}
            env: [{name: HF_HOME, value: /root/.cache/huggingface}]
            volumeMounts: [{name: cache, mountPath: /root/.cache/huggingface}]
        volumes: [{name: cache, emptyDir: {}}]
        ```
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            volumeMounts: [{name: cache, mountPath: /root/.cache/huggingface}]
        volumes: [{name: cache, emptyDir: {}}]
        ```

    References:
        - vllm 0.22.0, docker/Dockerfile (HOME of user 2000)
    """
    home = _home(engine, context)
    used = [variable.value for variable in engine.variables.values()] + [word.text for word in engine.words]
    for mount in engine.container.mounts if home and engine.container.complete else ():
        match = _HOME.fullmatch(mount.path)
        if match and match[1] != home and not any(text and mount.path.rstrip("/") in text for text in used):
            message = f"a volume is mounted at {mount.path}, but HOME of the engine is {home}"
            yield Problem(mount, message, f"Mount it below {home}, or set HF_HOME and its like to it.")


@rule("RUN030", "read-only-without-room", Severity.ERROR, scope=Engine)
def read_only_without_room(engine: Engine, context: Context) -> Iterator[Problem]:
    """A read-only root file system without writable folders where the engine writes.

    Why:
        Its processes talk over sockets in the temporary folder: without one it does not start. Model, compiled
        kernels and settings are written below HOME.

    Bad:
        ```yaml
        securityContext: {readOnlyRootFilesystem: true}
        ```

    Good:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B]
            securityContext: {readOnlyRootFilesystem: true, runAsUser: 2000, runAsGroup: 0}
            volumeMounts: [{name: tmp, mountPath: /tmp}, {name: home, mountPath: /home/vllm}]
        volumes: [{name: tmp, emptyDir: {}}, {name: home, emptyDir: {}}]
        ```

    References:
        - vllm 0.33.0, vllm/envs.py (VLLM_RPC_BASE_PATH, VLLM_CACHE_ROOT)
        - https://docs.python.org/3/library/tempfile.html#tempfile.gettempdir
    """
    node = engine.pod.security("readOnlyRootFilesystem", engine.container)
    if engine.pod.platform != "kubernetes" or node.value is not True or not engine.container.complete:
        return
    folders = [engine.variable(name) or "" for name in ("TMPDIR", "TEMP", "TMP")]
    folders += [*context.facts("image_users")["temporary"]["folders"], engine.node.text("workingDir")]
    if not any(folder and _writable(engine, folder) for folder in folders):
        message = "the root file system is read-only, and there is no writable temporary folder"
        yield Problem(node, message, "Mount an emptyDir at /tmp.")
    home = _home(engine, context)
    wanted = {
        name: _moved(engine, name, path) or (home and f"{home}/{path}")
        for name, path in _places(context).items()
    }
    lost = [
        f"{folder} ({name})" for name, folder in wanted.items() if folder and not _writable(engine, folder)
    ]
    if lost and _official(engine):
        message = f"the root file system is read-only, and the engine writes to {', '.join(lost)}"
        yield Problem(
            node, message, "Mount writable volumes there, or move them by the variables.", Severity.WARNING
        )


def _official(engine: Engine) -> bool:
    return engine.pod.platform == "kubernetes" and is_engine_image(engine.container.image)


def _stranger(engine: Engine, context: Context) -> tuple[int, Node] | None:
    """The user id of an engine in an official image that has no such user, and what sets it."""
    facts = context.facts("image_users")
    node = _user_node(engine)
    uid = _uid(node)
    mounted = any(mount.path == "/etc/passwd" for mount in engine.container.mounts)
    if uid is None or mounted or not is_engine_image(engine.container.image):
        return None
    known = uid < facts["system"]["below"] or uid == facts["system"]["nobody"]
    if known or (uid == facts["homes"]["uid"] and _has_own_user(engine, context) is not False):
        return None
    return uid, node


def _user_node(engine: Engine) -> Node:
    if engine.pod.platform == "compose":
        return engine.node.at("user")
    return engine.pod.security("runAsUser", engine.container)


def _uid(node: Node) -> int | None:
    text = node.text().partition(":")[0]
    return int(text) if text.isdecimal() else None


def _has_own_user(engine: Engine, context: Context) -> bool | None:
    """Whether the image has the user that vLLM's Dockerfile makes; None where the version is not known."""
    since = next(
        (
            entry["nonRootSince"]
            for entry in context.facts("images").values()
            if entry["repository"].rpartition("/")[2] == engine.container.image.name
        ),
        None,
    )
    if since is None:
        return False
    return None if engine.release is None else sort_key(engine.release.version) >= sort_key(since)


def _home(engine: Engine, context: Context) -> str | None:
    """HOME of the engine; None where it is not known."""
    if "HOME" in engine.variables:
        return (engine.variable("HOME") or "").rstrip("/") or None
    homes, node = context.facts("image_users")["homes"], _user_node(engine)
    uid = _uid(node)
    asked = engine.pod.security("runAsNonRoot", engine.container).value is True
    if uid == homes["uid"] and _has_own_user(engine, context):
        return str(homes["own"])
    return str(homes["root"]) if uid == 0 or (not node and not asked) else None


def _places(context: Context) -> dict[str, str]:
    places: dict[str, str] = context.facts("image_users")["caches"]["places"]
    return places


def _moved(engine: Engine, name: str, path: str) -> str | None:
    """Where a variable, or XDG_CACHE_HOME, puts a cache; None where nothing moves it."""
    if name == _HUB and (engine.model or "").startswith(_LOCAL):
        return engine.variable(name) or "/tmp"  # a local model needs no hub
    if name in engine.variables:
        return engine.variable(name) or None
    cache = engine.variable("XDG_CACHE_HOME")
    return f"{cache.rstrip('/')}/{path.rpartition('/')[2]}" if cache and path.startswith(".cache/") else None


def _writable(engine: Engine, folder: str) -> bool:
    """Whether a folder lies in a volume that may be written."""
    inside = [
        mount
        for mount in engine.container.mounts
        if f"{folder.rstrip('/')}/".startswith(f"{mount.path.rstrip('/')}/")
    ]
    if not inside:
        return False
    mount = max(inside, key=lambda mount: len(mount.path))
    volume = engine.pod.volumes.get(mount.volume)
    return not mount.read_only and not (volume and any(volume.at(kind) for kind in _READ_ONLY_VOLUMES))
