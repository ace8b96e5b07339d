#!/usr/bin/env python3
"""What training loses in step time while a protection runs beside it, with each of the limits.

One process trains: its steps are matrix products in --threads threads. Beside it volley protects --nodes nodes of --mib
MiB each in /dev/shm, a process for each. All of them are on this machine, so training loses here what it loses at all
nodes of a job together: the last column is for a GiB of checkpoints that is protected. Every round measures the settings
in another order, each after the same steps without a protection. The row async_save is Checkpointer.async_save of the
same state instead: its ranks, without steps of their own, copy their states, write them, and protect them as its
defaults say. VOLLEY names the binary.
"""
import argparse
import json
import os
import random
import secrets
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, List

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

ASYNC = "async_save, its copy too"
SETTINGS = [  # commands, of which volley gets its other flags; but for the last
    "volley",
    "nice -n 10 volley",
    "nice -n 19 volley",
    "env GOMAXPROCS=1 volley",
    "volley --limit-rate 100MB",
    "env GOMAXPROCS=1 nice -n 19 volley --limit-rate 100MB",
    ASYNC,
]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


Running = Callable[[], bool]


def protect(binary: str, roots: List[Path], setting: str) -> Running:
    """Starts a first protection of the nodes, a process for each. What it returns says whether it still runs."""
    for root in roots:
        shutil.rmtree(root / ".volley", ignore_errors=True)
    meet, secret, processes = f"127.0.0.1:{free_port()}", secrets.token_hex(32), []
    for rank, root in enumerate(roots):
        before, _, flags = setting.partition("volley")
        command = [*before.split(), binary, "protect", "--tolerate", "1", "--rank", str(rank), "--size", str(len(roots)), "--meet", meet, "--port", "", "--quiet", *flags.split(), str(root)]
        processes.append(subprocess.Popen(command, env={**os.environ, "VOLLEY_SECRET": secret}))

    def running() -> bool:
        if any([p.poll() is None for p in processes]):
            return True
        if any(p.returncode for p in processes):
            sys.exit(f"steptime: {setting}: exit codes {[p.returncode for p in processes]}")
        return False

    return running


class Ranks:
    """The ranks of a job that save when they are told to."""

    def __init__(self, roots: List[Path], mib: int) -> None:
        environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(len(roots))}
        self._processes = []
        for rank, root in enumerate(roots):
            command = [sys.executable, __file__, "--rank", str(root), "--mib", str(mib)]
            self._processes.append(subprocess.Popen(command, env={**environment, "RANK": str(rank)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        self._step = 0
        running = self.save()  # the first save also takes the memory
        while running():
            time.sleep(0.01)

    def save(self) -> Running:
        self._step += 1
        for p in self._processes:
            assert p.stdin
            p.stdin.write(f"{self._step}\n".encode())
            p.stdin.flush()
        left = [p.stdout.fileno() for p in self._processes if p.stdout]

        def running() -> bool:
            for ready in select.select(left, [], [], 0)[0] if left else ():
                if not os.read(ready, 100):
                    sys.exit("steptime: a rank of async_save has ended")
                left.remove(ready)
            return bool(left)

        return running

    def end(self) -> None:
        for p in self._processes:
            p.communicate()


def rank(root: Path, mib: int) -> None:
    """A rank, which saves for each line that it reads."""
    import torch.distributed as dist

    import volley.torch

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    checkpointer = volley.torch.Checkpointer(root, tolerate=1, retain=1)
    state = torch.randint(256, (mib << 20,), dtype=torch.uint8)
    for line in sys.stdin:
        checkpointer.async_save(state, int(line)).wait()
        print("saved", flush=True)


def steps(step: Callable[[], None], while_: Callable[[int], bool]) -> List[float]:
    """Returns the seconds of steps."""
    took: List[float] = []
    while while_(len(took)):
        begun = time.perf_counter()
        step()
        took.append(time.perf_counter() - begun)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--mib", type=int, default=256, help="of each node")
    parser.add_argument("--threads", type=int, default=1, help="of the training")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rank", type=Path, help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.rank:
        return rank(o.rank, o.mib)
    binary = shutil.which(os.environ.get("VOLLEY", "volley"))
    if not binary:
        sys.exit("steptime: no binary volley: put it in the PATH, or name it in VOLLEY")
    if o.nodes < 2 or o.mib < 1 or o.threads < 1 or o.rounds < 1:
        sys.exit("steptime: want two nodes or more, and everything else 1 or more")
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    a, b = torch.rand(256, 256), torch.rand(256, 256)

    def step() -> None:
        for _ in range(8):
            torch.mm(a, b)

    alone: Dict[str, List[float]] = {name: [] for name in SETTINGS}  # medians of each round
    beside: Dict[str, List[float]] = {name: [] for name in SETTINGS}
    lasted: Dict[str, List[float]] = {name: [] for name in SETTINGS}
    lost: Dict[str, List[float]] = {name: [] for name in SETTINGS}  # seconds for a GiB
    order = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="steptime.", dir="/dev/shm") as directory:
        roots = [Path(directory) / f"node{n}" for n in range(o.nodes)]
        for root in roots:
            root.mkdir()
            with open(root / "checkpoint", "wb") as file:
                for _ in range(o.mib):
                    file.write(os.urandom(1 << 20))
        ranks = Ranks([Path(directory) / f"rank{n}" for n in range(o.nodes)], o.mib)
        steps(step, lambda n: n < 20)
        for number in range(o.rounds):
            for name in order.sample(SETTINGS, len(SETTINGS)):
                usual = statistics.median(steps(step, lambda n: n < 50))
                begun = time.perf_counter()
                running = ranks.save() if name == ASYNC else protect(binary, roots, name)
                took = steps(step, lambda n: running())
                alone[name].append(usual)
                beside[name].append(statistics.median(took))
                lasted[name].append(time.perf_counter() - begun)
                lost[name].append(sum(t - usual for t in took) / (o.nodes * o.mib / 1024))
            print(f"round {number + 1} of {o.rounds}", file=sys.stderr)
        ranks.end()
    rows = []
    for name in SETTINGS:
        m = {key: statistics.median(of[name]) for key, of in (("alone", alone), ("beside", beside), ("lasted", lasted), ("lost", lost))}
        rows.append({"limits": name, "step_ms": 1000 * m["alone"], "beside_ms": 1000 * m["beside"], "slower": statistics.median(y / x for x, y in zip(alone[name], beside[name])), "protect_seconds": m["lasted"], "lost_seconds_per_gib": m["lost"]})
    if o.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{o.nodes} nodes of {o.mib} MiB on {os.cpu_count()} cores, {o.threads} threads train, medians of {o.rounds}\n")
    print("| limits of the protection | step alone, ms | beside it, ms | slower | protection, s | lost, s for a GiB |")
    print("|---|---|---|---|---|---|")
    for r in rows:
        print(f"| {r['limits']} | {r['step_ms']:.1f} | {r['beside_ms']:.1f} | {r['slower']:.2f}× | {r['protect_seconds']:.1f} | {r['lost_seconds_per_gib']:.2f} |")


if __name__ == "__main__":
    main()
