"""What an engine does with its KV cache: `--kv-transfer-config`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vllm_phases.model.arguments import Argument, Arguments, Key

_FLAG = "kv-transfer-config"


@dataclass(frozen=True)
class KvTransfer:
    """A configuration, or a connector inside a MultiConnector.

    argument  the option that gives it
    config    its fields as given; empty where the text is no JSON object or is not known
    children  the connectors of a MultiConnector, in order
    path      the way to it in the JSON, () outside of a MultiConnector
    """

    argument: Argument
    config: Mapping[str, Any]
    children: tuple[KvTransfer, ...]
    path: tuple[str | int, ...] = ()

    def key(self, *path: str | int) -> Key:
        """One of its keys, for a finding to point at."""
        return self.argument.key(*self.path, *path)

    def option(self, name: str) -> Key:
        """One of the keys of kv_connector_extra_config."""
        return self.key("kv_connector_extra_config", name)

    @property
    def connector(self) -> str:
        """kv_connector, "" where it is not given."""
        return str(self.config.get("kv_connector") or "")

    @property
    def role(self) -> str:
        """kv_role, "" where it is not given."""
        return str(self.config.get("kv_role") or "")

    @property
    def extra(self) -> Mapping[str, Any]:
        """kv_connector_extra_config."""
        extra = self.config.get("kv_connector_extra_config")
        return extra if isinstance(extra, dict) else {}

    def all(self) -> Iterator[KvTransfer]:
        """Itself and every connector inside it."""
        yield self
        for child in self.children:
            yield from child.all()

    def find(self, connector: str) -> KvTransfer | None:
        """The first connector of a name, at whatever depth."""
        return next((transfer for transfer in self.all() if transfer.connector == connector), None)


def kv_transfer(arguments: Arguments) -> KvTransfer | None:
    """The configuration of an engine; None where it has none."""
    argument = arguments.last(_FLAG)
    return _transfer(argument, arguments.object(_FLAG) or {}) if argument else None


def _transfer(argument: Argument, config: Mapping[str, Any], path: tuple[str | int, ...] = ()) -> KvTransfer:
    extra = config.get("kv_connector_extra_config")
    listed = extra.get("connectors") if isinstance(extra, dict) else None
    children = listed if isinstance(listed, list) and config.get("kv_connector") == "MultiConnector" else []
    inside = tuple(
        _transfer(argument, child, (*path, "kv_connector_extra_config", "connectors", index))
        for index, child in enumerate(children)
        if isinstance(child, dict)
    )
    return KvTransfer(argument, config, inside, path)
