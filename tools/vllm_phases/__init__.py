"""Charts and checks that take a vLLM service from one process to packed prefill and decode."""

from __future__ import annotations

__version__ = "0.1.0"
