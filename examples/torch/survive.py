#!/usr/bin/env python3
"""Trains with four hosts of two ranks, loses two hosts at a random moment, and goes on.

Each run has another seed. It trains once undisturbed. Then it trains again, kills all processes of two hosts and
removes their directories, and starts the job anew with two empty hosts. The final weights have to be the same, to the
bit. Hosts are groups of processes on this machine, each with a directory below /dev/shm.
"""
import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
HOSTS, RANKS = 4, 2  # of each host


class Job:
    """The ranks of a training run: the processes of each host are in a session of their own."""

    def __init__(self, directory: Path, steps: int, seed: int, out: Path) -> None:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        path = f"{HERE.parents[1] / 'python'}:{os.environ.get('PYTHONPATH', '')}"
        self.hosts = []
        for h in range(HOSTS):
            self.hosts.append([])
            for r in range(h * RANKS, (h + 1) * RANKS):
                place = {"RANK": r, "WORLD_SIZE": HOSTS * RANKS, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
                environment = {**os.environ, "PYTHONPATH": path, **{k: str(v) for k, v in place.items()}}
                command = [sys.executable, HERE / "train.py", directory / f"host{h}", str(steps), str(seed), out]
                output = {"stdout": subprocess.PIPE if r == 0 else None, "stderr": open(directory / f"rank{r}.log", "w")}
                self.hosts[h].append(subprocess.Popen(command, env=environment, text=True, start_new_session=True, **output))

    def begins(self) -> str:
        """Waits until the training begins, and returns what it says."""
        return self.hosts[0][0].stdout.readline().strip()

    def wait(self) -> None:
        for p in sum(self.hosts, []):
            if p.wait(timeout=300):
                raise SystemExit(f"a rank failed: {p.args[3:]}: exit code {p.returncode}; see rank*.log there")

    def kill(self, hosts: list) -> None:
        """Kills the processes of hosts, with what they have started."""
        for p in sum((self.hosts[h] for h in hosts), []):
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:  # it has ended
                pass
            p.wait()


def train(directory: Path, steps: int, seed: int, out: Path, lose: random.Random = None, seconds: float = 0) -> float:
    """Trains to the end, and returns how long that took. With lose two hosts are lost within the seconds."""
    directory.mkdir(exist_ok=True)
    job = Job(directory, steps, seed, out)
    try:
        job.begins()
        begun = time.monotonic()
        if lose:
            time.sleep(lose.uniform(0, seconds))
            lost = lose.sample(range(HOSTS), 2)
            job.kill(lost)
            job.kill(range(HOSTS))  # what an engine does with the rest of a job
            for h in lost:
                shutil.rmtree(directory / f"host{h}", ignore_errors=True)
            job = Job(directory, steps, seed, out)
            print(f"hosts {lost} lost after {time.monotonic() - begun:.2f} s; the job {job.begins()}", flush=True)
        job.wait()
        return time.monotonic() - begun
    finally:
        job.kill(range(HOSTS))


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--seed", type=int, default=random.randrange(1 << 20), help="of the first run (default: random)")
    a = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # no rank is left behind
    for seed in range(a.seed, a.seed + a.runs):
        directory = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="survive."))
        took = train(directory / "undisturbed", a.steps, seed, directory / "want.pt")
        print(f"seed {seed}: undisturbed in {took:.2f} s", flush=True)
        train(directory / "disturbed", a.steps, seed, directory / "got.pt", random.Random(seed), took)
        want, got = torch.load(directory / "want.pt"), torch.load(directory / "got.pt")
        if want.keys() != got.keys() or not all(torch.equal(want[k], got[k]) for k in want):
            raise SystemExit(f"seed {seed}: the weights differ: {directory}")
        shutil.rmtree(directory)
    print(f"{a.runs} runs: the weights are identical to the bit")


if __name__ == "__main__":
    main()
