"""ARG: the YAML file of `vllm serve --config FILE` (vllm_phases.model.config_file)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm_phases.finding import Severity
from vllm_phases.model import Engine, config_file
from vllm_phases.rules.registry import Context, Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule("ARG022", "config-file-not-read", Severity.ERROR, scope=Engine)
def config_file_not_read(engine: Engine, context: Context) -> Iterator[Problem]:
    """A --config that vLLM does not read, or that stops it.

    Why:
        vLLM looks for the word `--config` and takes the next one for the file. `--config=FILE` is accepted and
        passed over without a word, so no option of the file counts. A second --config stops vLLM, and so does a
        file that does not end in .yaml or .yml.

    Bad:
        ```yaml
        args: [Qwen/Qwen3-8B, --config=/etc/vllm/config.yaml]
        ```
        ```yaml
        args: [Qwen/Qwen3-8B, --config, /etc/vllm/config.json]
        ```

    Good:
        ```yaml
        args: [Qwen/Qwen3-8B, --config, /etc/vllm/config.yaml]
        ```

    References:
        - vllm/utils/argparse_utils.py of 0.11 to 0.33, parse_args, _pull_args_from_config and load_config_file
    """
    given = engine.arguments.all("config")
    for option in given:
        name = option.value
        if option.attached and option.written == config_file.OPTION:
            message = f"{option.word.text} is passed over: vLLM reads a file after a blank only"
            yield Problem(option, message, f"Write {config_file.OPTION} and the file as two words.")
        elif len(given) > 1:
            yield Problem(option, f"--config is given {len(given)} times, which stops vLLM", "Keep one.")
        elif name is not None and not name.endswith(config_file.EXTENSIONS):
            message = f"{name} does not end in .yaml or .yml, and vLLM reads no other file"
            yield Problem(option, message, "Rename the file.")


@rule("ARG023", "config-file-value", Severity.ERROR, scope=Engine, versioned=True)
def config_file_value(engine: Engine, context: Context) -> Iterator[Problem]:
    """A value in the file of --config that the release cannot read there.

    Why:
        `false` turns a flag off from 0.28 on, where the flag has a --no- form and the key is written with dashes;
        else it is passed over, which is told as a warning unless the flag is off by default. A mapping becomes JSON
        from 0.16 on; before, it becomes Python's own writing, which is no JSON.

    Bad:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.18.0
            args: [Qwen/Qwen3-8B, --config, /etc/vllm/config.yaml]
            volumeMounts: [{name: config, mountPath: /etc/vllm}]
        volumes: [{name: config, configMap: {name: engine}}]
        ---
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: engine}
        data: {config.yaml: 'enable-prefix-caching: false'}
        ```

    Good:
        ```yaml
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            args: [Qwen/Qwen3-8B, --config, /etc/vllm/config.yaml]
            volumeMounts: [{name: config, mountPath: /etc/vllm}]
        volumes: [{name: config, configMap: {name: engine}}]
        ---
        kind: ConfigMap
        apiVersion: v1
        metadata: {name: engine}
        data: {config.yaml: 'enable-prefix-caching: false'}
        ```

    References:
        - vllm/utils/argparse_utils.py of 0.15.1, 0.16.0, 0.27.1 and 0.28.0, load_config_file
    """
    release = engine.release
    for key, node in engine.config.entries() if engine.config and release else ():
        flag = resolved.flag if release and (resolved := release.resolve(f"--{key}")) else None
        if flag is None or release is None:
            continue
        if node.value is False and flag.default is not False and config_file.false_is_lost(key, release):
            message = f"vLLM {release.version} passes over {key}: false in the file of --config"
            fix = f"Leave it out here, and give --no-{flag.name} on the command line."
            yield Problem(node, message, fix, Severity.WARNING)
        elif isinstance(node.value, dict) and config_file.mapping_is_lost(release):
            message = f"vLLM {release.version} reads no mapping for {key} in the file of --config"
            yield Problem(node, message, f"Write it as JSON in one text: {key}: '{{…}}'.")
