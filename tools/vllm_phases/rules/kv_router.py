"""KV: routers and proxies that hand requests from prefill to decode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine, Router, relations
from vllm_phases.rules import kv
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vllm_phases.model.relations import Url

_SIDES = ("prefill", "decode")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_BOOTSTRAP = 8998
_ANNOTATION = "vllm.ai/bootstrap-port"
_VLLM_ROUTER = "vllm-router"


@rule("KV090", "router-connector-differs", Severity.ERROR, scope=Router)
def router_connector_differs(router: Router, context: Context) -> Iterator[Problem]:
    """vllm-router speaks another KV protocol than its engines.

    Why:
        --kv-connector (nixl unless it is given) decides what the router tells prefill and decode. Engines with
        another connector transfer nothing, or every request fails.

    Bad:
        ```sh
        vllm serve m --port 8100 --kv-transfer-config '{"kv_connector":"MooncakeConnector","kv_role":"kv_producer"}' &
        vllm serve m --port 8200 --kv-transfer-config '{"kv_connector":"MooncakeConnector","kv_role":"kv_consumer"}' &
        vllm-router --vllm-pd-disaggregation --prefill http://127.0.0.1:8100 8998 --decode http://127.0.0.1:8200
        ```

    Good:
        ```sh
        vllm serve m --port 8100 --kv-transfer-config '{"kv_connector":"MooncakeConnector","kv_role":"kv_producer"}' &
        vllm serve m --port 8200 --kv-transfer-config '{"kv_connector":"MooncakeConnector","kv_role":"kv_consumer"}' &
        vllm-router --vllm-pd-disaggregation --kv-connector mooncake \
          --prefill http://127.0.0.1:8100 8998 --decode http://127.0.0.1:8200
        ```

    References:
        - vllm-router --help
    """
    if router.kind != _VLLM_ROUTER or "vllm-pd-disaggregation" not in router.arguments:
        return
    flag = router.arguments.last("kv-connector")
    spoken = flag.value if flag else _default("kv-connector", context)
    discovers = "vllm-discovery-address" in router.arguments
    for engine in _behind(router, context, *_SIDES):
        protocol = kv.protocol_of(engine, context)
        if spoken and protocol and protocol != spoken and not (protocol == "p2pNccl" and discovers):
            connector = next(
                each.connector for each in kv.transfers(engine) if kv.fact(each, context).get("protocol")
            )
            message = f"the router speaks {spoken}, but {engine.pod.name or 'an engine'} has {connector}"
            fix = (
                f"Set --kv-connector {protocol}."
                if protocol != "p2pNccl"
                else "Set --vllm-discovery-address."
            )
            yield Problem(flag or router, message, fix)
            return


def _default(option: str, context: Context) -> str:
    return str(kv.listed("routerDefaults", context)[option])


def _behind(router: Router, context: Context, *sides: str) -> tuple[Engine, ...]:
    """The engines that a router sends to, by URL or by label, as prefill or decode."""
    found: dict[int, Engine] = {}
    for side in sides:
        for engine in (*_selected(router, context, side), *_addressed(router, context, side)):
            found[id(engine)] = engine
    return tuple(found.values())


def _selected(router: Router, context: Context, side: str) -> Iterator[Engine]:
    if "service-discovery" in router.arguments and (selector := _selector(router, side)):
        namespace = router.arguments.text("service-discovery-namespace") or ""
        for pod in context.release.index.selected(selector, namespace):
            yield from relations.engines_in(context.release, pod)


def _selector(router: Router, side: str) -> dict[str, str]:
    option = router.arguments.last(f"{side}-selector")
    words = option.values if option and all(word.known for word in option.values) else ()
    return dict(pair for word in words for text in word.text.split() if len(pair := text.split("=", 1)) == 2)


def _addressed(router: Router, context: Context, side: str) -> Iterator[Engine]:
    for url in relations.urls(router, side):
        yield from _at(router, context, url)


def _at(router: Router, context: Context, url: Url) -> Iterator[Engine]:
    """The engines at an address: of a Service, of a compose service, or on the machine of a script."""
    service = relations.service_at(context.release, url.host, router.pod.namespace)
    if router.pod.platform == "kubernetes":
        yield from relations.engines_of(context.release, service) if service else ()
        return
    for engine in context.release.engines:
        if engine.pod.platform != router.pod.platform or engine.node.document is not router.node.document:
            continue
        here = router.pod.platform == "compose" and engine.pod.name == url.host
        local = router.pod.platform == "shell" and url.host in _LOOPBACK and engine.port == url.port
        if here or local:
            yield engine


@rule("KV091", "proxy-of-another-connector", Severity.ERROR, scope=Router)
def proxy_of_another_connector(router: Router, context: Context) -> Iterator[Problem]:
    """One of vLLM's example proxies in front of engines with another connector than its own.

    Why:
        Each knows one protocol; disagg_proxy_demo.py passes no kv_transfer_params at all. Requests are answered,
        but decode computes every prompt again.

    Bad:
        ```sh
        vllm serve m --port 8100 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve m --port 8200 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}' &
        python3 disagg_proxy_demo.py --model m --prefill localhost:8100 --decode localhost:8200 --port 8000
        ```

    Good:
        ```sh
        vllm serve m --port 8100 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve m --port 8200 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}' &
        python3 tests/v1/kv_connector/nixl_integration/toy_proxy_server.py --port 8000 \
          --prefiller-hosts localhost --prefiller-ports 8100 --decoder-hosts localhost --decoder-ports 8200
        ```

    References:
        - https://github.com/vllm-project/vllm/pull/42703
    """
    protocols = kv.listed("proxyProtocols", context)
    if router.kind not in protocols:
        return
    for engine in _behind(router, context, *_SIDES) or _beside(router, context):
        given = kv.protocol_of(engine, context)
        if given and given != protocols[router.kind]:
            spoken = protocols[router.kind] or "no kv_transfer_params"
            message = f"the proxy passes {spoken}, but the engines transfer by {given}"
            where = router.arguments.positionals[-1] if router.arguments.positionals else router
            yield Problem(where, message, f"Use vllm-router, or the example proxy for {given}.")
            return


def _beside(router: Router, context: Context) -> tuple[Engine, ...]:
    """The prefill and decode engines of the same file, where the proxy's addresses do not tell."""
    return tuple(
        engine
        for engine in context.release.engines
        if engine.role in _SIDES and engine.node.document is router.node.document
    )


@rule("KV092", "router-roles-swapped", Severity.ERROR, scope=Router)
def router_roles_swapped(router: Router, context: Context) -> Iterator[Problem]:
    """A router that takes decode engines for prefill, or the reverse.

    Why:
        Prefill is asked for the first token and its KV; an engine with kv_role kv_consumer keeps none for others.

    Bad:
        ```sh
        vllm serve m --port 8100 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve m --port 8200 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}' &
        vllm-router --vllm-pd-disaggregation --prefill http://127.0.0.1:8200 --decode http://127.0.0.1:8100
        ```

    Good:
        ```sh
        vllm serve m --port 8100 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
        vllm serve m --port 8200 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}' &
        vllm-router --vllm-pd-disaggregation --prefill http://127.0.0.1:8100 --decode http://127.0.0.1:8200
        ```

    References:
        - vllm-router --help
    """
    for side, wrong in zip(_SIDES, ("kv_consumer", "kv_producer"), strict=True):
        for url in relations.urls(router, side):
            engines = list(_at(router, context, url))
            if engines and all(engine.kv and engine.kv.role == wrong for engine in engines):
                message = f"--{side} {url.word.text} leads to an engine with kv_role {wrong}"
                yield Problem(url.word, message, f"Give --{side} the engines of that role.")
        engines = list(_selected(router, context, side))
        flag = router.arguments.last(f"{side}-selector")
        if flag and engines and all(engine.kv and engine.kv.role == wrong for engine in engines):
            message = f"--{side}-selector takes engines with kv_role {wrong}"
            yield Problem(flag, message, f"Select the engines of the role {side}.")


@rule("KV093", "router-target-port", Severity.ERROR, scope=Router)
def router_target_port(router: Router, context: Context) -> Iterator[Problem]:
    """A router that looks for its engines on a port where they are not.

    Why:
        The Service has no such port, or the engine of the compose service listens on another: every request to it
        fails.

    Bad:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B, --port=8100]
          router:
            image: vllm/vllm-router:v0.1.17
            command: [vllm-router, --host=0.0.0.0, --worker-urls, 'http://engine:8000']
        ```

    Good:
        ```compose
        services:
          engine:
            image: vllm/vllm-openai:v0.33.0
            command: [Qwen/Qwen3-8B, --port=8100]
          router:
            image: vllm/vllm-router:v0.1.17
            command: [vllm-router, --host=0.0.0.0, --worker-urls, 'http://engine:8100']
        ```

    References:
        - vllm-router --help
    """
    for url in relations.urls(router, *_SIDES, "worker-urls", "static-backends"):
        port = url.port or {"http": 80, "https": 443}.get(url.scheme)
        ports, what = _open_ports(router, context, url)
        if port and ports and port not in ports:
            message = f"{url.word.text} asks for port {port}, but {what} {url.host} has {', '.join(map(str, ports))}"
            yield Problem(url.word, message, f"Write {url.scheme or 'http'}://{url.host}:{ports[0]}.")


def _open_ports(router: Router, context: Context, url: Url) -> tuple[list[int], str]:
    """The ports at an address, as far as they are known, and what is there."""
    if router.pod.platform == "compose":
        ports = [engine.port for engine in _at(router, context, url)]
        return [port for port in ports if port is not None], "the engine"
    service = relations.service_at(context.release, url.host, router.pod.namespace)
    if router.pod.platform != "kubernetes" or service is None or service.headless:
        return [], ""
    return [port.number for port in service.ports if port.number is not None], "the Service"


@rule("KV094", "router-without-disaggregation", Severity.ERROR, scope=Router)
def router_without_disaggregation(router: Router, context: Context) -> Iterator[Problem]:
    """vllm-router with one part of its P/D options only.

    Why:
        --prefill and --decode are dropped without --vllm-pd-disaggregation: the router starts with no worker. With
        it, both are required unless the router discovers its engines, and then a selector is.

    Bad:
        ```sh
        vllm-router --prefill http://p:8000 --decode http://d:8000
        ```
        ```sh
        vllm-router --vllm-pd-disaggregation --prefill http://p:8000
        ```
        ```sh
        vllm-router --vllm-pd-disaggregation --service-discovery
        ```

    Good:
        ```sh
        vllm-router --vllm-pd-disaggregation --service-discovery --prefill-selector role=p --decode-selector role=d
        ```
        ```sh
        vllm-router --vllm-pd-disaggregation --vllm-discovery-address 0.0.0.0:30001
        ```

    References:
        - vllm-router 0.1.17, tried: vllm_router/router_args.py
    """
    given = router.arguments
    if router.kind != _VLLM_ROUTER or given.open:
        return
    sides = [side for side in _SIDES if side in given]
    if "vllm-pd-disaggregation" not in given:
        if sides and "pd-disaggregation" not in given:
            message = f"--{' and --'.join(sides)} are dropped without --vllm-pd-disaggregation"
            yield Problem(given.last(sides[0]) or router, message, "Add --vllm-pd-disaggregation.")
    elif "service-discovery" in given:
        if not any(f"{side}-selector" in given for side in _SIDES):
            message = "service discovery for prefill and decode has no selector"
            yield Problem(given.last("service-discovery") or router, message, f"{_ADD}-selector.")
    elif "vllm-discovery-address" not in given and len(sides) < len(_SIDES):
        missing = next(side for side in _SIDES if side not in sides)
        message = f"--vllm-pd-disaggregation needs --{missing}"
        yield Problem(given.last("vllm-pd-disaggregation") or router, message, f"Add --{missing} URL.")


_ADD = "Add --prefill-selector and --decode"


@rule("KV095", "bootstrap-port-differs", Severity.ERROR, scope=Router)
def bootstrap_port_differs(router: Router, context: Context) -> Iterator[Problem]:
    """A router that asks Mooncake's bootstrap server on another port than the prefill engine has it.

    Why:
        The router learns engine ids from http://PREFILL:PORT/query. The engine has VLLM_MOONCAKE_BOOTSTRAP_PORT,
        8998 unless it is set.

    Bad:
        ```compose
        services:
          prefill:
            image: vllm/vllm-openai:v0.33.0
            command: [m, '--kv-transfer-config={"kv_connector":"MooncakeConnector","kv_role":"kv_producer"}']
            environment: {VLLM_MOONCAKE_BOOTSTRAP_PORT: "9100"}
          router:
            image: vllm/vllm-router:v0.1.17
            command: [vllm-router, --vllm-pd-disaggregation, --kv-connector=mooncake, --prefill, 'http://prefill:8000', "8998"]
        ```

    Good:
        ```compose
        services:
          prefill:
            image: vllm/vllm-openai:v0.33.0
            command: [m, '--kv-transfer-config={"kv_connector":"MooncakeConnector","kv_role":"kv_producer"}']
            environment: {VLLM_MOONCAKE_BOOTSTRAP_PORT: "9100"}
          router:
            image: vllm/vllm-router:v0.1.17
            command: [vllm-router, --vllm-pd-disaggregation, --kv-connector=mooncake, --prefill, 'http://prefill:8000', "9100"]
        ```

    References:
        - docs/features/mooncake_connector_usage.md
    """
    for url, asked in _asked(router):
        for engine in _at(router, context, url):
            served = _served(engine, context)
            if served and served != asked:
                message = f"the bootstrap server of {url.host} is asked on {asked}, but listens on {served}"
                yield Problem(url.word, message, f"Write {served} after the URL.")
    for engine in _selected(router, context, "prefill"):
        told, served = engine.pod.annotations.get(_ANNOTATION, ""), _served(engine, context)
        if served and told.isdecimal() and int(told) != served:
            message = f"{_ANNOTATION} is {told}, but the bootstrap server listens on {served}"
            yield Problem(engine.pod.metadata.at("annotations", _ANNOTATION), message, f"Write {served}.")


def _asked(router: Router) -> Iterator[tuple[Url, int]]:
    """The prefill addresses of a router, with the port on which it asks for the bootstrap server there."""
    urls = relations.urls(router, "prefill")
    for option in router.arguments.all("prefill"):
        texts = [word.text for word in option.values]
        port = next((int(text) for text in texts if text.isdecimal()), None)
        if port is None and router.kind == "mooncake-proxy" and "none" not in texts:
            port = _BOOTSTRAP
        yield from ((url, port) for url in urls if port is not None and url.word in option.values)


def _served(engine: Engine, context: Context) -> int | None:
    return kv.bootstrap_port(engine) if kv.over(engine, "mooncake", context) else None


@rule("KV096", "router-finds-no-engine", Severity.WARNING, scope=Router)
def router_finds_no_engine(router: Router, context: Context) -> Iterator[Problem]:
    """A selector of vllm-router that takes none of the engines here.

    Why:
        The router is ready without workers and answers `No available workers`.

    Bad:
        ```yaml
        metadata: {labels: {role: prefill}}
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ---
        containers:
          - name: router
            image: vllm/vllm-router:v0.1.17
            args: [--host=0.0.0.0, --vllm-pd-disaggregation, --service-discovery, --prefill-selector=role=prefil]
        ```

    Good:
        ```yaml
        metadata: {labels: {role: prefill}}
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ---
        containers:
          - name: router
            image: vllm/vllm-router:v0.1.17
            args: [--host=0.0.0.0, --vllm-pd-disaggregation, --service-discovery, --prefill-selector=role=prefill]
        ```

    References:
        - vllm-router --help
    """
    if "service-discovery" not in router.arguments or router.pod.platform != "kubernetes":
        return
    if not any(engine.pod.platform == "kubernetes" for engine in context.release.engines):
        return
    for side in _SIDES:
        flag, selector = router.arguments.last(f"{side}-selector"), _selector(router, side)
        if flag and selector and not list(_selected(router, context, side)):
            labels = " ".join(f"{key}={value}" for key, value in selector.items())
            yield Problem(
                flag, f"no engine here has the labels {labels}", f"Select the labels of the {side} pods."
            )


@rule("KV097", "router-on-loopback", Severity.ERROR, scope=Router)
def router_on_loopback(router: Router, context: Context) -> Iterator[Problem]:
    """A router that listens on its own loopback address, where no Service and no other container reaches it.

    Why:
        vllm-router and Mooncake's example proxy bind 127.0.0.1 unless --host is given.

    Bad:
        ```yaml
        containers:
          - name: router
            image: vllm/vllm-router:v0.1.17
            args: [--worker-urls, 'http://engine:8000']
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: router}
        spec: {selector: {app: demo-0}, ports: [{port: 30000}]}
        ```

    Good:
        ```yaml
        containers:
          - name: router
            image: vllm/vllm-router:v0.1.17
            args: [--host=0.0.0.0, --worker-urls, 'http://engine:8000']
        ---
        kind: Service
        apiVersion: v1
        metadata: {name: router}
        spec: {selector: {app: demo-0}, ports: [{port: 30000}]}
        ```

    References:
        - vllm-router --help
    """
    if router.kind not in (_VLLM_ROUTER, "mooncake-proxy") or router.arguments.open:
        return
    flag = router.arguments.last("host")
    host = flag.value if flag else _default("host", context)
    if host not in _LOOPBACK or not kv.address_of_its_own(router.pod):
        return
    published = router.container.ports if router.pod.platform == "compose" else ()
    reached = relations.services_of(context.release, router.pod) or published
    container = router.container
    told = flag or container.has_command or any("router" in word.text for word in container.words[:3])
    message = f"the router listens on {host}, inside its own container only"
    yield Problem(
        flag or router, message, "Add --host 0.0.0.0.", None if reached and told else Severity.WARNING
    )


@rule("KV098", "router-discovery-port", Severity.ERROR, scope=Router)
def router_discovery_port(router: Router, context: Context) -> Iterator[Problem]:
    """vllm-router looks for the pods that it discovers on a port where they do not listen.

    Why:
        --service-discovery-port is 80 unless it is given, and vLLM listens on 8000.

    Bad:
        ```yaml
        metadata: {labels: {role: prefill}}
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ---
        containers:
          - name: router
            image: vllm/vllm-router:v0.1.17
            args: [--host=0.0.0.0, --vllm-pd-disaggregation, --service-discovery, --prefill-selector=role=prefill]
        ```

    Good:
        ```yaml
        metadata: {labels: {role: prefill}}
        spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.33.0', args: [Qwen/Qwen3-8B]}]}
        ---
        containers:
          - name: router
            image: vllm/vllm-router:v0.1.17
            args:
              - --host=0.0.0.0
              - --vllm-pd-disaggregation
              - --service-discovery
              - --service-discovery-port=8000
              - --prefill-selector=role=prefill
        ```

    References:
        - vllm-router --help
    """
    if router.kind != _VLLM_ROUTER or router.arguments.open:
        return
    flag = router.arguments.last("service-discovery-port")
    asked = flag.value if flag else _default("service-discovery-port", context)
    for side in _SIDES:
        for engine in _selected(router, context, side):
            if engine.port and asked and asked.isdecimal() and int(asked) != engine.port:
                message = f"discovered pods are asked on port {asked}, but {engine.pod.name} listens on {engine.port}"
                where = flag or router.arguments.last("service-discovery") or router
                yield Problem(where, message, f"Set --service-discovery-port {engine.port}.")
                return


@rule("KV099", "p2p-registration-port", Severity.ERROR, scope=Router)
def p2p_registration_port(router: Router, context: Context) -> Iterator[Problem]:
    """Engines with P2pNcclConnector that register on another port than the router listens on.

    Why:
        They announce themselves at proxy_ip:proxy_port every 3 s; the router listens at --vllm-discovery-address.

    Bad:
        ```compose
        services:
          prefill:
            image: vllm/vllm-openai:v0.13.0
            command:
              - m
              - --kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_connector_extra_config":{"proxy_ip":"router","proxy_port":"30001","http_port":"8000"}}
          router:
            image: vllm/vllm-router:v0.1.17
            command: [vllm-router, --vllm-pd-disaggregation, --vllm-discovery-address=0.0.0.0:30002]
        ```

    Good:
        ```compose
        services:
          prefill:
            image: vllm/vllm-openai:v0.13.0
            command:
              - m
              - --kv-transfer-config={"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_connector_extra_config":{"proxy_ip":"router","proxy_port":"30001","http_port":"8000"}}
          router:
            image: vllm/vllm-router:v0.1.17
            command: [vllm-router, --vllm-pd-disaggregation, --vllm-discovery-address=0.0.0.0:30001]
        ```

    References:
        - vllm 0.23.0: vllm/distributed/kv_transfer/kv_connector/v1/p2p/p2p_nccl_engine.py
    """
    flag = router.arguments.last("vllm-discovery-address")
    listens = (flag.value or "").rpartition(":")[2] if flag else ""
    for engine in context.release.engines if listens.isdecimal() else ():
        p2p = kv.over(engine, "p2pNccl", context)
        port = str(p2p.extra.get("proxy_port") or "") if p2p else ""
        if (
            p2p
            and port.isdecimal()
            and port != listens
            and _called(router, str(p2p.extra.get("proxy_ip")), context)
        ):
            message = f"proxy_port is {port}, but the router listens for engines on {listens}"
            yield Problem(p2p.option("proxy_port"), message, f'Set proxy_port to "{listens}".')


def _called(router: Router, host: str, context: Context) -> bool:
    """Whether a name or address surely leads to a router, on the port that it listens on."""
    if router.pod.platform == "compose":
        return host == router.pod.name
    return router.pod.platform == "shell" and host in _LOOPBACK
