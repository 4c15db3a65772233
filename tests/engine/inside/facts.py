"""Print as JSON what the installed vLLM knows about itself; run by the engine environment's Python."""

from __future__ import annotations

import dataclasses
import json
from importlib.metadata import version
from typing import Any

from vllm import envs  # type: ignore[import-not-found]
from vllm.config import KVTransferConfig  # type: ignore[import-not-found]
from vllm.distributed.kv_transfer.kv_connector.factory import (  # type: ignore[import-not-found]
    KVConnectorFactory,
)
from vllm.entrypoints.launchers.cli_args import make_arg_parser  # type: ignore[import-not-found]
from vllm.utils.argparse_utils import FlexibleArgumentParser  # type: ignore[import-not-found]


def facts() -> dict[str, Any]:
    """Collect what the catalogue of vllm-phases holds of a release."""
    parser = make_arg_parser(FlexibleArgumentParser())
    return {
        "version": version("vllm").partition("+")[0],
        "options": {option: action.dest for option, action in parser._option_string_actions.items()},
        "env": sorted(envs.environment_variables),
        "connectors": sorted(KVConnectorFactory._registry),
        "kv_transfer_fields": sorted(field.name for field in dataclasses.fields(KVTransferConfig)),
    }


if __name__ == "__main__":
    print("\n" + json.dumps(facts()))
