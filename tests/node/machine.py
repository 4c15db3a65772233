"""A machine of the test's own: network, mount and process namespaces without a way out.

Whatever runs in it, and every mount and network device made in it, ends with its first process, and that one ends
with the test, however the test ends. Only control groups would stay; they are removed here.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.control_plane import BIN, CommandError, Programs, StartError

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GROUPS = "vllm-phases-node-"  # the name of a machine's control groups; the test's process id follows
STOP_SECONDS = 60


class Machine(Programs):
    """The programs of one node in namespaces of their own; leaving the `with` block ends all of it.

    `address` is the node's, as its pods see it. `network` is what a command starts with to run in the machine's
    network alone, as kubectl does.
    """

    def __init__(self, folder: Path, address: str) -> None:
        super().__init__(folder)
        self.address = address
        self.cgroup = f"{GROUPS}{os.getpid()}"

    def __enter__(self) -> Machine:
        remove_stale_cgroups()
        with (self.folder / "machine.log").open("w+") as log:
            spaces = ("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc")
            command = (*spaces, "sh", HERE / "machine.sh", ROOT, self.folder, self.address)
            self._first = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
            if self._first.stdout is None or self._first.stdout.readline() != b"ready\n":
                self._first.communicate()
                raise StartError(f"the test's own machine did not start:\n{log.seek(0) or log.read()}")
        for root in cgroup_roots():
            (root / self.cgroup).mkdir(exist_ok=True)  # a hierarchy may be mounted twice
        self.network, self.enter = self._entrances()
        return self

    def __exit__(self, *_: object) -> None:
        self._first.communicate(timeout=STOP_SECONDS)  # ends its input, which the first process waits for
        super().__exit__()
        remove_cgroup(self.cgroup)

    def run(self, *command: str | Path, stdin: str = "") -> str:
        """Run a command in the machine and return what it printed; raise CommandError when it fails."""
        done = subprocess.run(
            [*self.enter, *command], input=stdin, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise CommandError(f"$ {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def _entrances(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        spaces = f"/proc/{self._first.pid}/ns"
        network = ("nsenter", f"--net={spaces}/net")
        everything = (*network, f"--mount={spaces}/mnt", f"--pid={spaces}/pid_for_children")
        path = f"PATH={BIN}:{os.environ['PATH']}"  # containerd looks for its shim there
        return network, (*everything, "env", f"--chdir={self.folder}", path)


def cgroup_roots() -> Iterator[Path]:
    """Where control groups are mounted: one place, or one for each controller of version 1."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind in ("cgroup", "cgroup2"):
            yield Path(place)


def remove_stale_cgroups() -> None:
    """Remove what a test left that was killed."""
    names = {group.name for root in cgroup_roots() for group in root.glob(f"{GROUPS}*")}
    for name in names:
        if not Path("/proc", name.removeprefix(GROUPS)).exists():
            remove_cgroup(name)


def remove_cgroup(name: str) -> None:
    """Remove a control group and those in it. All their processes have ended."""
    for root in cgroup_roots():
        for folder, *_ in os.walk(root / name, topdown=False):
            Path(folder).rmdir()
