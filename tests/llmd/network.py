"""Networks of their own for pods, so that each may listen on the ports that the chart gives it.

They have no names: a network is gone with the last process in it, also after a test that was killed.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of sched.h
_BRIDGE = "pods"
NODE = "10.88.0.1"
"""The node's address, as pods see it."""


@contextmanager
def own_network() -> Iterator[None]:
    """Give this thread, and every process that it starts, a network with a bridge for pods (root only)."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    if libc.unshare(_NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "no network namespace")
    try:
        _ip("link", "set", "lo", "up")
        _ip("link", "add", _BRIDGE, "type", "bridge")
        _ip("address", "add", f"{NODE}/16", "dev", _BRIDGE)
        _ip("link", "set", _BRIDGE, "up")
        yield
    finally:
        libc.setns(before, _NEW_NETWORK)
        os.close(before)


class Pod:
    """The network of one pod: an address on the bridge, and the command that enters it."""

    def __init__(self, number: int) -> None:
        self.address = f"10.88.1.{number}"
        self._holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self.enter = ("nsenter", f"--net=/proc/{self._holder.pid}/ns/net")
        self._wait()
        inside, outside = f"in{number}", f"pod{number}"
        _ip("link", "add", outside, "type", "veth", "peer", "name", inside)
        _ip("link", "set", inside, "netns", str(self._holder.pid))
        _ip("link", "set", outside, "master", _BRIDGE, "up")
        for words in (("link", "set", "lo", "up"), ("address", "add", f"{self.address}/16", "dev", inside)):
            _ip(*words, enter=self.enter)
        _ip("link", "set", inside, "up", enter=self.enter)

    def _wait(self) -> None:
        """Until the holder has left this network."""
        while os.readlink(f"/proc/{self._holder.pid}/ns/net") == os.readlink("/proc/thread-self/ns/net"):
            assert self._holder.poll() is None

    def stop(self) -> None:
        self._holder.kill()
        self._holder.wait()


def _ip(*words: str, enter: tuple[str, ...] = ()) -> None:
    done = subprocess.run([*enter, "ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
