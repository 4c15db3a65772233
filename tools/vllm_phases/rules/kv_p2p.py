"""KV: P2pNcclConnector, which vLLM had up to 0.23."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine, Release, relations
from vllm_phases.rules import kv
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model import KvTransfer, Node, Service

_P2P = "p2pNccl"
_SWITCH = "VLLM_DISABLE_REQUEST_ID_RANDOMIZATION"
_POOL_GIB = 32


@rule("KV060", "p2p-request-ids", Severity.ERROR, scope=Engine, versioned=True)
def p2p_request_ids(engine: Engine, context: Context) -> Iterator[Problem]:
    """P2pNcclConnector in a release that changes request ids.

    Why:
        The connector reads the addresses of both peers out of the request id, which must be the same on both.
        From 0.14 on the engine adds a random part: every request hangs. From 0.17 on
        VLLM_DISABLE_REQUEST_ID_RANDOMIZATION=1 stops that; before, nothing does.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.23.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}']
        ```
        ```yaml
        image: vllm/vllm-openai:v0.15.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}']
        env: [{name: VLLM_DISABLE_REQUEST_ID_RANDOMIZATION, value: "1"}]
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.23.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}']
        env: [{name: VLLM_DISABLE_REQUEST_ID_RANDOMIZATION, value: "1"}]
        ```
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}']
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/42839
        - https://github.com/vllm-project/vllm/pull/34415
    """
    p2p = kv.over(engine, _P2P, context)
    present = engine.release is not None and "P2pNcclConnector" in engine.release.connectors
    if p2p is None or not present or not kv.has(engine, "requestIdsRandomised", context):
        return
    message = (
        "the engine changes request ids, out of which P2pNcclConnector reads addresses: every request hangs"
    )
    if not kv.has(engine, "requestIdsSwitch", context):
        fix = "Run 0.13 or older, or 0.17 to 0.23, or set NixlConnector: no setting helps in this release."
        yield Problem(p2p.argument, message, fix)
    elif engine.variable(_SWITCH) in ("0", "") or (_SWITCH not in engine.variables and _complete(engine)):
        yield Problem(
            engine.variables.get(_SWITCH) or p2p.argument, message, f"Set {_SWITCH}=1 on both roles."
        )


def _complete(engine: Engine) -> bool:
    """Whether all variables are there; a script's own count as all, as its author typed what is needed."""
    return engine.container.complete or engine.pod.platform == "shell"


@rule("KV061", "p2p-unregistered", Severity.WARNING, scope=Engine)
def p2p_unregistered(engine: Engine, context: Context) -> Iterator[Problem]:
    """P2pNcclConnector that registers with no proxy.

    Why:
        Only a proxy can make the request ids that name both peers, and it learns the peers because they register
        at proxy_ip:proxy_port. A request without such an id ends the engine with a ValueError. kv_rank,
        kv_parallel_size, MASTER_ADDR and MASTER_PORT wire nothing.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}']
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args:
          - Qwen/Qwen3-8B
          - --kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_connector_extra_config":{"proxy_ip":"router","proxy_port":"30001","http_port":"8000"}}
        ```

    References:
        - vllm 0.23.0: vllm/distributed/kv_transfer/kv_connector/v1/p2p/p2p_nccl_engine.py
        - https://github.com/vllm-project/vllm/issues/44062
    """
    for p2p in _p2p(engine, context):
        extra = p2p.extra
        if not extra.get("proxy_ip") or not extra.get("proxy_port"):
            message = "P2pNcclConnector registers with no proxy, and without one no request finds both peers"
            fix = "Run a proxy that makes request ids, and set proxy_ip, proxy_port and http_port in "
            yield Problem(p2p.argument, message, f"{fix}kv_connector_extra_config.")


def _p2p(engine: Engine, context: Context) -> Iterator[KvTransfer]:
    """The engine's P2pNcclConnector, unless its release has none, which is said elsewhere."""
    p2p = kv.over(engine, _P2P, context)
    if p2p and (engine.release is None or "P2pNcclConnector" in engine.release.connectors):
        yield p2p


@rule("KV062", "p2p-proxy-options", Severity.ERROR, scope=Engine)
def p2p_proxy_options(engine: Engine, context: Context) -> Iterator[Problem]:
    """Options of P2pNcclConnector that do not lead to its proxy, or not back.

    Why:
        proxy_port is joined to a text, so a number is a TypeError at start. http_port has no default, and the
        proxy sends requests to it, so it must be the engine's --port.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args:
          - Qwen/Qwen3-8B
          - --kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_connector_extra_config":{"proxy_ip":"router","proxy_port":30001,"http_port":"8000"}}
        ```
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args:
          - Qwen/Qwen3-8B
          - --port=8100
          - --kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_connector_extra_config":{"proxy_ip":"router","proxy_port":"30001","http_port":"8000"}}
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args:
          - Qwen/Qwen3-8B
          - --port=8100
          - --kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_connector_extra_config":{"proxy_ip":"router","proxy_port":"30001","http_port":"8100"}}
        ```

    References:
        - vllm 0.23.0: vllm/distributed/kv_transfer/kv_connector/v1/p2p/p2p_nccl_engine.py
    """
    for p2p in _p2p(engine, context):
        proxy, http = p2p.extra.get("proxy_port"), p2p.extra.get("http_port")
        if isinstance(proxy, int):
            message = f"proxy_port is the number {proxy}, but P2pNcclConnector takes a text"
            yield Problem(p2p.option("proxy_port"), message, f'Write "{proxy}" in quotes.')
        if p2p.extra.get("proxy_ip") and not http:
            yield Problem(
                p2p.argument, "proxy_ip is set without http_port", "Set http_port to the engine's --port."
            )
        elif http and kv.known(http) and engine.port is not None and str(http) != str(engine.port):
            message = f"http_port is {http}, but the engine listens on {engine.port}"
            yield Problem(p2p.option("http_port"), message, f"Set http_port to {engine.port}.")


@rule("KV063", "p2p-memory-pool", Severity.ERROR, scope=Engine)
def p2p_memory_pool(engine: Engine, context: Context) -> Iterator[Problem]:
    """A memory limit that P2pNcclConnector's pool fills alone.

    Why:
        Each worker pins mem_pool_size_gb (32 GiB unless it is set) of host memory when it starts, so a container
        of that size is killed before it serves.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}']
        resources: {limits: {nvidia.com/gpu: 1, memory: 32Gi}}
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args:
          - Qwen/Qwen3-8B
          - --kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_connector_extra_config":{"mem_pool_size_gb":4}}
        resources: {limits: {nvidia.com/gpu: 1, memory: 32Gi}}
        ```

    References:
        - vllm 0.23.0: vllm/distributed/kv_transfer/kv_connector/v1/p2p/tensor_memory_pool.py
    """
    limit, ranks = kv.memory_limit(engine), engine.gpus_needed
    for p2p in _p2p(engine, context):
        given = str(kv.option(p2p, "mem_pool_size_gb", _POOL_GIB))
        if limit is None or ranks is None or not given.isdecimal():
            continue
        pool = ranks * int(given)
        if pool * kv.GIB >= limit:
            message = f"P2pNcclConnector pins {pool} GiB of host memory at start, of {limit / kv.GIB:g} GiB"
            fix = "Set mem_pool_size_gb in kv_connector_extra_config, such as 4, or raise limits.memory."
            yield Problem(engine.container.limits()["memory"], message, fix)


@rule("KV064", "p2p-pipeline-parallel", Severity.ERROR, scope=Engine)
def p2p_pipeline_parallel(engine: Engine, context: Context) -> Iterator[Problem]:
    """Pipeline parallelism under P2pNcclConnector.

    Why:
        It knows only tensor parallelism, of the same size on both roles.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args:
          - Qwen/Qwen3-8B
          - --pipeline-parallel-size=2
          - --kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args:
          - Qwen/Qwen3-8B
          - --tensor-parallel-size=2
          - --kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/24657
    """
    flag, stages = engine.arguments.last("pipeline-parallel-size"), engine.number("pipeline-parallel-size")
    for _ in _p2p(engine, context):
        if flag and stages and stages > 1:
            message = f"P2pNcclConnector knows no pipeline parallelism, but {stages} stages are asked for"
            yield Problem(flag, message, "Set --pipeline-parallel-size=1, or NixlConnector.")


@rule("KV065", "p2p-on-one-gpu", Severity.ERROR, scope=Release)
def p2p_on_one_gpu(release: Release, context: Context) -> Iterator[Problem]:
    """Prefill and decode of P2pNcclConnector on the same GPU.

    Why:
        The pair forms one NCCL group, and NCCL refuses two ranks on one card (`Duplicate GPU detected`).

    Bad:
        ```sh
        CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-8B --port 8100 \
          --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}' &
        CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-8B --port 8200 \
          --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_consumer"}'
        ```

    Good:
        ```sh
        CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-8B --port 8100 \
          --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}' &
        CUDA_VISIBLE_DEVICES=1 vllm serve Qwen/Qwen3-8B --port 8200 \
          --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_consumer"}'
        ```

    References:
        - https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/communicators.html
    """
    for prefill, decode in relations.pairs(release):
        if not all(list(_p2p(engine, context)) for engine in (prefill, decode)):
            continue
        cards = [_cards(engine) for engine in (prefill, decode)]
        shared = cards[0] & cards[1]
        if shared and kv.one_network(prefill, decode):
            message = f"prefill and decode both run on GPU {', '.join(sorted(shared))}, which NCCL refuses"
            where = decode.start or decode.node
            yield Problem(
                where, message, "Give decode another card in CUDA_VISIBLE_DEVICES, or NixlConnector."
            )


def _cards(engine: Engine) -> set[str]:
    listed = engine.variable("CUDA_VISIBLE_DEVICES") or ""
    return {part.strip() for part in listed.split(",") if part.strip()}


@rule("KV066", "p2p-reachable", Severity.ERROR, scope=Engine)
def p2p_reachable(engine: Engine, context: Context) -> Iterator[Problem]:
    """An engine with P2pNcclConnector that clients reach past the proxy.

    Why:
        A request whose id names no peers raises a ValueError inside the worker and ends the engine, so one curl
        takes the service down.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}']
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: decode}
        spec: {type: LoadBalancer, selector: {app: demo-0}, ports: [{port: 80, targetPort: 8000}]}
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}']
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: decode}
        spec: {selector: {app: demo-0}, ports: [{port: 80, targetPort: 8000}]}
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/44062
    """
    for _ in _p2p(engine, context):
        for service in relations.services_of(context.release, engine.pod):
            for node, what in _entrances(service, context.release):
                message = f"{what} lets clients reach an engine that any ordinary request ends"
                fix = "Send clients to the proxy, and keep this Service a ClusterIP."
                yield Problem(node, message, fix, Severity.WARNING if service.type == "NodePort" else None)


def _entrances(service: Service, release: Release) -> Iterator[tuple[Node, str]]:
    if service.type in ("LoadBalancer", "NodePort"):
        yield service.node.at("spec", "type"), f"the {service.type} {service.object.name}"
    for route in relations.routes_to(release, "Service", service.object.name, service.object.namespace):
        for backend in route.backends:
            if backend.name == service.object.name:
                yield backend.node, route.object.id


@rule("KV067", "p2p-ipv6", Severity.ERROR, scope=Engine)
def p2p_ipv6(engine: Engine, context: Context) -> Iterator[Problem]:
    """P2pNcclConnector over IPv6.

    Why:
        It takes addresses apart at their colons, so IPv6 addresses break it.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}']
        env: [{name: VLLM_HOST_IP, value: 'fd00::7'}]
        ```

    Good:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}']
        env: [{name: VLLM_HOST_IP, value: '10.0.0.7'}]
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/42149
    """
    for _ in _p2p(engine, context):
        address = engine.variable("VLLM_HOST_IP") or ""
        if ":" in address:
            message = f"VLLM_HOST_IP is {address}, but P2pNcclConnector knows no IPv6"
            yield Problem(engine.variables["VLLM_HOST_IP"], message, "Set an IPv4 address, or NixlConnector.")
        for service in relations.services_of(context.release, engine.pod):
            families = [item.text() for item in service.node.items("spec", "ipFamilies")]
            if families[:1] == ["IPv6"]:
                node = service.node.at("spec", "ipFamilies")
                yield Problem(node, "P2pNcclConnector knows no IPv6", "Set IPv4, or NixlConnector.")


@rule("KV068", "p2p-on-slice", Severity.WARNING, scope=Engine)
def p2p_on_slice(engine: Engine, context: Context) -> Iterator[Problem]:
    """P2pNcclConnector on a slice that HAMi cuts.

    Why:
        It turns NCCL_CUMEM_ENABLE on. NCCL's allocations on that path crash or hang under HAMi's library in
        several of its releases, with a single GPU too.

    Bad:
        ```yaml
        image: vllm/vllm-openai:v0.13.0
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_consumer"}']
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, '--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_consumer"}']
        resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 40000}}
        ```

    References:
        - https://github.com/Project-HAMi/HAMi-core/issues/169
        - https://github.com/Project-HAMi/HAMi/issues/2641
    """
    for p2p in _p2p(engine, context):
        if engine.gpu.kind == "hami":
            message = "P2pNcclConnector uses NCCL's cuMem path, which fails under HAMi's library"
            yield Problem(
                p2p.key("kv_connector"),
                message,
                "Set NixlConnector on slices, or give the engine whole cards.",
            )


@rule("KV069", "p2p-settings-differ", Severity.ERROR, scope=Release)
def p2p_settings_differ(release: Release, context: Context) -> Iterator[Problem]:
    """Prefill and decode of P2pNcclConnector that differ where they must be alike.

    Why:
        Each rank sends to the rank of the same number, so tensor parallel sizes must be equal; and send_type
        decides which side acts, so with two of them both wait for ever.

    Bad:
        ```sh
        vllm serve Qwen/Qwen3-8B -tp 2 --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}' &
        vllm serve Qwen/Qwen3-8B -tp 1 --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_consumer"}'
        ```
        ```sh
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_connector_extra_config":{"send_type":"GET"}}' &
        vllm serve Qwen/Qwen3-8B --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_consumer"}'
        ```

    Good:
        ```sh
        vllm serve Qwen/Qwen3-8B -tp 2 --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_producer"}' &
        vllm serve Qwen/Qwen3-8B -tp 2 --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_consumer"}'
        ```

    References:
        - https://github.com/vllm-project/vllm/issues/24657
        - https://github.com/vllm-project/vllm/issues/14952
    """
    for prefill, decode in relations.pairs(release):
        both = list(chain(_p2p(prefill, context), _p2p(decode, context)))
        if len(both) < 2:
            continue
        sizes = [engine.number("tensor-parallel-size") for engine in (prefill, decode)]
        if None not in sizes and sizes[0] != sizes[1]:
            message = f"prefill has tensor parallel size {sizes[0]} and decode {sizes[1]}"
            where = decode.arguments.last("tensor-parallel-size") or both[1].argument
            yield Problem(
                where, message, "P2pNcclConnector needs equal sizes: set the same, or NixlConnector."
            )
        kinds = [kv.option(p2p, "send_type", "PUT_ASYNC") for p2p in both]
        if None not in kinds and kinds[0] != kinds[1]:
            message = f"send_type is {kinds[0]} on prefill and {kinds[1]} on decode"
            yield Problem(both[1].option("send_type"), message, "Set the same send_type on both.")
