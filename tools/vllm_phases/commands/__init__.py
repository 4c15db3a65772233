"""The sub-commands, one module each; `vllm_phases.cli` imports only the one that runs."""
