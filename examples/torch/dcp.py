#!/usr/bin/env python3
"""What Writer and Reader take beside plain torch.distributed.checkpoint (DCP): bytes, seconds and memory.

--ranks ranks with --mib MiB of state each save and load it in turns: with volley.torch, each rank with a directory of its
own, as at its own node, and plain, with one directory for all. All directories are in /dev/shm. What is loaded is compared
with what was saved. The figures are medians of --rounds; of all ranks, the memory of the one that took most.

  moved   what all have sent over the network, by the counter of the interface lo, which sees all programs of the machine:
          use a network namespace. Plain: the bytes of the files in the shared directory, as all of them would go to and from
          a file system that all nodes see.
  memory  beside the state, of a rank and its child volley: without pages of files. It is sampled.

    unshare --net sh -c 'ip link set lo up && VOLLEY=./volley exec examples/torch/dcp.py'

VOLLEY names the binary. It takes PyTorch 2.6 or later.
"""
import argparse
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

TENSORS = 16
HERE = Path(__file__).resolve().parent


class Memory(threading.Thread):
    """Samples what this process and its children have in memory of their own."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._first = self._now()
        self._most, self._ended = 0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self._ended.wait(0.02):
            self._most = max(self._most, self._now() - self._first)

    def _now(self) -> int:
        of = [os.getpid()]
        for task in Path("/proc/self/task").iterdir():
            try:
                of += map(int, (task / "children").read_text().split())
            except OSError:  # it has ended
                pass
        total = 0
        for pid in of:
            try:
                total += sum(int(line.split()[1]) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("RssAnon:"))
            except OSError:
                pass
        return total * 1024

    def end(self) -> int:
        self._ended.set()
        self.join()
        return self._most


def sent() -> int:
    """Returns the bytes that lo has sent."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == "lo":
            return int(counters.split()[8])
    raise SystemExit("dcp: no interface lo")


class Rank:
    """A rank of a job, which measures."""

    def __init__(self, directory: Path, mib: int, rounds: int) -> None:
        import torch
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Shard, distribute_tensor

        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        self.dist, self.rank, self.directory, self.rounds = dist, dist.get_rank(), directory, rounds
        saved = int(os.environ["SAVED"])  # how many ranks have saved, or will
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        rows = saved * mib * (1 << 20) // (TENSORS * 4096)
        self.rows = torch.arange(rows * 1024, dtype=torch.float32).view(rows, 1024)
        self.state = {f"layer{i}": distribute_tensor(self.rows, mesh, [Shard(0)]) for i in range(TENSORS)}
        self.wanted = self.state["layer0"].to_local().clone()
        del self.rows
        self.step = 0
        self.found: Dict[str, List[Dict[str, float]]] = {}

    def root(self) -> Path:
        return self.directory / f"node{self.rank}"

    def fill(self, zero: bool) -> None:
        for t in self.state.values():
            t.to_local().zero_() if zero else t.to_local().copy_(self.wanted)

    def measure(self, name: str, does: Callable[[], Any], files: Optional[Path] = None) -> None:
        """Measures what all ranks do. What it returns waits for the rest of it. `files` are what was moved, of plain ones."""
        self.dist.barrier()
        before, memory, begun = sent(), Memory(), time.perf_counter()
        rest = does()
        returned = time.perf_counter() - begun
        if rest:
            rest()
        self.dist.barrier()
        took, moved = time.perf_counter() - begun, sent() - before
        if files:
            moved = sum(f.stat().st_size for f in files.iterdir())
        everyone: List[Any] = [None] * self.dist.get_world_size()
        self.dist.all_gather_object(everyone, (memory.end(), returned))
        found = {"seconds": took, "moved": moved, "memory": max(m for m, _ in everyone)}
        if rest:
            found["returned"] = max(r for _, r in everyone)
        self.found.setdefault(name, []).append(found)

    def load(self, name: str, reader: Callable[[], Any], files: Optional[Path] = None) -> None:
        import torch
        import torch.distributed.checkpoint as dcp

        self.fill(zero=True)
        self.measure(name, lambda: dcp.load(self.state, storage_reader=reader()), files)
        if not all(torch.equal(t.to_local(), self.wanted) for t in self.state.values()):
            raise SystemExit(f"dcp: {name}: rank {self.rank} has loaded something else")

    def lose(self, ranks: List[int], parts: str = "*") -> None:
        """Removes what is at the nodes of ranks."""
        self.dist.barrier()
        for path in self.root().glob(parts) if self.rank in ranks else ():
            shutil.rmtree(path)
        self.dist.barrier()

    def forget(self, shared: Path) -> None:
        self.dist.barrier()
        if self.rank == 0:
            shutil.rmtree(shared)
        self.dist.barrier()

    def save_and_load(self) -> None:
        """Measures the job that saves, and leaves a snapshot and a plain checkpoint for the next."""
        import torch.distributed.checkpoint as dcp

        import volley.torch

        everyone, shared, order = list(range(self.dist.get_world_size())), self.directory / "shared", random.Random(1)

        def plain(last: bool) -> None:
            self.measure("save, plain", lambda: dcp.save(self.state, storage_writer=dcp.FileSystemWriter(shared)) and None, shared)
            self.load("load, plain", lambda: dcp.FileSystemReader(shared), shared)
            if not last:
                self.forget(shared)

        def plain_async(last: bool) -> None:
            self.measure("async_save, plain", lambda: dcp.async_save(self.state, storage_writer=dcp.FileSystemWriter(shared)).result, shared)
            self.forget(shared)

        writers = {tolerate: volley.torch.Writer(self.root(), tolerate, retain=1) for tolerate in (1, 2)}

        def place(tolerate: int) -> Dict[str, Any]:
            self.step += 1
            return {"checkpoint_id": self.step, "storage_writer": writers[tolerate]}

        def save(tolerate: int, last: bool) -> None:
            self.measure(f"save, Writer, tolerate {tolerate}", lambda: dcp.save(self.state, **place(tolerate)) and None)
            self.load(f"load, Reader, tolerate {tolerate}, no node lost", lambda: volley.torch.Reader(self.root()))
            self.lose([1, 2][:tolerate])
            self.load(f"load, Reader, tolerate {tolerate}, {tolerate} lost", lambda: volley.torch.Reader(self.root()))
            if not last or tolerate == 1:
                self.lose(everyone)

        def save_async(tolerate: int, last: bool) -> None:
            self.measure(f"async_save, Writer, tolerate {tolerate}", lambda: dcp.async_save(self.state, **place(tolerate)).result)
            self.lose(everyone)

        for number in range(self.rounds + 1):  # the first one warms up
            ways: List[Any] = [plain_async, lambda last: save(1, last), lambda last: save_async(1, last), lambda last: save_async(2, last)]
            last = number == self.rounds
            # What stays for the next job comes last.
            for way in order.sample(ways, len(ways)) + order.sample([plain, lambda last: save(2, last)], 2):
                self.fill(zero=False)
                way(last)

    def load_elsewhere(self) -> None:
        """Measures the job that has another number of ranks, each with its node."""
        import torch.distributed.checkpoint as dcp

        import volley.torch

        shared, ranks = self.directory / "shared", self.dist.get_world_size()
        for number in range(self.rounds + 1):
            for way in random.Random(number).sample(["plain", "Reader"], 2):
                if way == "plain":
                    self.load(f"load, plain, {ranks} ranks", lambda: dcp.FileSystemReader(shared), shared)
                else:
                    self.load(f"load, Reader, {ranks} ranks, the others' nodes lost", lambda: volley.torch.Reader(self.root()))
                    self.lose(list(range(ranks)), ".spare-*")


def job(directory: Path, ranks: int, saved: int, o: argparse.Namespace) -> Dict[str, List[Dict[str, float]]]:
    """Runs a job to its end, and returns what rank 0 has found."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    command = [sys.executable, __file__, "--mib", str(o.mib), "--rounds", str(o.rounds), "--rank", str(directory)]
    environment = {**os.environ, "WORLD_SIZE": str(ranks), "SAVED": str(saved), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    environment.update(PYTHONPATH=str(HERE.parents[1] / "python"), PYTHONWARNINGS="ignore")  # of DCP, about itself
    processes = [subprocess.Popen(command, env={**environment, "RANK": str(r)}, stdout=subprocess.PIPE, text=True) for r in range(ranks)]
    try:
        said = [p.communicate()[0] for p in processes]
    finally:
        for p in processes:
            p.kill()
    if any(p.returncode for p in processes):
        raise SystemExit(f"dcp: ranks ended with {[p.returncode for p in processes]}")
    found: Dict[str, List[Dict[str, float]]] = json.loads(said[0].splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--mib", type=int, default=256, help="of each rank")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rank", type=Path, help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.ranks < 4 or o.mib < 1 or o.rounds < 1:
        sys.exit("dcp: want 4 ranks or more, and everything else 1 or more")
    if o.rank:
        rank = Rank(o.rank, o.mib, o.rounds)
        rank.save_and_load() if int(os.environ["WORLD_SIZE"]) == int(os.environ["SAVED"]) else rank.load_elsewhere()
        if rank.rank == 0:
            print(json.dumps(rank.found))
        rank.dist.barrier()
        rank.dist.destroy_process_group()
        return
    directory = Path(tempfile.mkdtemp(prefix="volley-dcp-", dir="/dev/shm"))
    try:
        found = job(directory, o.ranks, o.ranks, o)
        found.update(job(directory, o.ranks - 1, o.ranks, o))
    finally:
        shutil.rmtree(directory)
    print(f"{o.ranks} ranks with {o.mib} MiB each on {os.cpu_count()} cores, medians of {o.rounds}\n")
    print("| | returns, s | done, s | moved, MiB | memory of a rank, MiB |")
    print("|---|---|---|---|---|")
    for name, all_ in sorted(found.items(), key=lambda x: (x[0].startswith("load"), x[0].startswith("async"), "ranks" in x[0])):
        m = {key: statistics.median(f[key] for f in all_[1:]) for key in all_[0]}
        returned = f"{m['returned']:.2f}" if "returned" in m else ""
        print(f"| {name} | {returned} | {m['seconds']:.2f} | {m['moved'] / (1 << 20):,.0f} | {m['memory'] / (1 << 20):,.0f} |")


if __name__ == "__main__":
    main()
