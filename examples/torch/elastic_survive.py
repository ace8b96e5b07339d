#!/usr/bin/env python3
"""Trains under torchrun --nnodes 3:4, loses a node at a random moment, and goes on with three or with a spare.

Each run has another seed. It trains once undisturbed with four nodes of two ranks. Then it trains again: the agent of a
node is killed with its ranks, and the node's directory is gone. With an even seed an empty node comes in its place,
after a while; with an odd one three nodes go on alone. The final weights have to be the same, to the bit. Nodes are groups
of processes of this machine, each with a directory below /dev/shm. The agents meet by a file. Node 0 is not lost.

VOLLEY names the binary. It takes PyTorch 2.6 or later.
"""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import List

import torch

HERE = Path(__file__).resolve().parent
NODES, RANKS = 4, 2
PATIENCE = 600  # seconds that a run may take


class Job:
    """The agents of torchrun, one for each node."""

    def __init__(self, directory: Path, steps: int, out: Path) -> None:
        self._directory, self._steps, self._out = directory, steps, out
        self.agents: List[subprocess.Popen] = []
        for _ in range(NODES):
            self.join()

    def root(self, node: int) -> Path:
        return self._directory / f"node{node}"

    def join(self) -> None:
        """Starts the agent of another node, whose directory is empty."""
        node = len(self.agents)
        command = [
            sys.executable, "-m", "torch.distributed.run", f"--nnodes={NODES - 1}:{NODES}", f"--nproc-per-node={RANKS}", "--max-restarts=100",
            "--rdzv-backend=c10d", f"--rdzv-endpoint={self._out}.meeting", "--rdzv-id=elastic", "--local-addr=127.0.0.1", "--monitor-interval=0.1",
            "--rdzv-conf=store_type=file,last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=3",
            str(HERE / "elastic.py"), str(self._steps), str(self._out),
        ]  # fmt: skip
        environment = {**os.environ, "ROOT": str(self.root(node)), "PYTHONPATH": str(HERE.parents[1] / "python"), "OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        with open(self._directory / f"log{node}", "w") as log:
            self.agents.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True))

    def saved(self, step: int) -> bool:
        """Whether a snapshot of this step, or of a later one, is there."""
        return any(int(d.name[5:]) >= step for d in self.root(0).glob("step-*") if d.name[5:].isdigit())

    def lose(self, node: int) -> None:
        """Kills the agent of a node, with its ranks and what they have started, and removes the directory of the node."""
        agent = self.agents[node]
        parents = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has ended
                pass
        own = {agent.pid}
        while more := {p for p, parent in parents.items() if parent in own} - own:
            own |= more
        for p in own:
            try:
                os.kill(p, signal.SIGKILL)
            except ProcessLookupError:
                pass
        agent.wait()
        shutil.rmtree(self.root(node), ignore_errors=True)
        shutil.rmtree(self.root(node), ignore_errors=True)  # a rank may have been writing

    def wait(self) -> None:
        end = time.monotonic() + PATIENCE
        for a in self.agents:
            a.wait(max(1, end - time.monotonic()))
        if not self._out.exists():
            raise SystemExit(f"the job has ended without weights: see {self._directory}")

    def end(self) -> None:
        for node, a in enumerate(self.agents):
            if a.poll() is None:
                self.lose(node)


def run(steps: int, seed: int) -> str:
    draw = random.Random(seed)
    directory = Path(tempfile.mkdtemp(prefix="volley-elastic-", dir="/dev/shm"))
    weights = []
    for disturbed in (False, True):
        job = Job(directory, steps, directory / f"weights-{disturbed}.pt")
        try:
            if disturbed:
                at = draw.randrange(1, steps // 2)  # before the end: agents that have ended wait 5 minutes for one that is lost
                while not job.saved(at) and job.agents[0].poll() is None:
                    time.sleep(0.02)
                time.sleep(draw.uniform(0, 0.5))
                lost = draw.randrange(1, NODES)
                job.lose(lost)
                if seed % 2 == 0:
                    time.sleep(draw.uniform(0, 3))
                    job.join()
            job.wait()
        finally:
            job.end()
        weights.append(torch.load(directory / f"weights-{disturbed}.pt"))
        told = [line for node in range(len(job.agents)) for line in (directory / f"log{node}").read_text().splitlines() if " ranks begin after " in line]
        for node in range(NODES + 1):
            shutil.rmtree(job.root(node), ignore_errors=True)
    begins = sorted((line.split("]:")[-1].strip() for line in told), key=lambda line: int(line.split()[-1]))  # rank 0 may be at any node
    if not all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0]):
        raise SystemExit(f"seed {seed}: the weights differ: see {directory}")
    shutil.rmtree(directory)
    return f"seed {seed}: node {lost} was lost{', a spare came' if seed % 2 == 0 else ''}; {'; '.join(begins)}; the weights are the same"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    for s in range(o.seed, o.seed + o.runs):
        print(run(o.steps, s), flush=True)
