"""`python -m vllm_phases` is the command."""

from __future__ import annotations

from vllm_phases.cli import main

main()
