"""Tells again and again that an engine has a prompt in its cache, by vLLM's own publisher.

Run with vLLM's Python as: publisher.py CONFIG TOKENS BLOCK_SIZE, where CONFIG is the value of --kv-events-config and
TOKENS a JSON list.
"""

from __future__ import annotations

import json
import sys
import time

from vllm.config.kv_events import KVEventsConfig  # type: ignore[import-not-found]
from vllm.distributed.kv_events import (  # type: ignore[import-not-found]
    BlockStored,
    EventPublisherFactory,
    KVEventBatch,
)

CONFIG, TOKENS, SIZE = json.loads(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
BLOCKS = len(TOKENS) // SIZE

publisher = EventPublisherFactory.create(KVEventsConfig(**CONFIG))
while True:
    stored = BlockStored(
        block_hashes=[number.to_bytes(32, "big") for number in range(1, BLOCKS + 1)],
        parent_block_hash=None,
        token_ids=TOKENS[: BLOCKS * SIZE],
        block_size=SIZE,
        lora_id=None,
        medium="GPU",
        lora_name=None,
    )
    publisher.publish(KVEventBatch(ts=time.time(), events=[stored]))
    time.sleep(0.2)
