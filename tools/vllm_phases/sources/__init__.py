"""What the user gave, as documents whose values know where they stand.

A document that cannot be read becomes the finding LINT001, and the rest goes on.
"""

from __future__ import annotations

from vllm_phases.sources.document import Document, Node
from vllm_phases.sources.files import STDIN, Sources, read, read_text

__all__ = ["STDIN", "Document", "Node", "Sources", "read", "read_text"]
