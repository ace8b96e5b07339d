#!/usr/bin/env python3
"""Trains with four hosts of two ranks, loses two hosts at random moments, and goes on.

Each run has another seed. It trains once undisturbed. Then it trains again and loses two hosts: their processes are
killed, and their directories are gone. With an odd seed both are lost at one moment. With an even one the second is lost
when the job has started anew, also while it recovers. Empty hosts take their places, in another order. The final
weights have to be the same, to the bit.

Hosts are groups of processes on this machine, each with a directory below /dev/shm. With --lab RATE, as root, each is a
network namespace with an address of its own and a link of that rate: bench/network/lab, which one program at a time can
use. A host that is lost there is cut off before its processes end: the others only find that it is silent.
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
from typing import List, Sequence

import torch

HERE = Path(__file__).resolve().parent
LAB = HERE.parents[1] / "bench/network/lab"
HOSTS, RANKS, LOST = 4, 2, 2  # RANKS of each host
PATIENCE = 300  # seconds that a job may take


class Failed(Exception):
    """What a run shows to be wrong. Its files stay."""


class Host:
    """Processes with an address, and a root in memory."""

    def __init__(self, number: int, directory: Path, lab: bool) -> None:
        self.number, self.root, self._lab = number, directory / f"host{number}", lab
        self.address = f"10.78.0.{number + 1}" if lab else "127.0.0.1"
        self._processes: List[subprocess.Popen] = []

    def start(self, command: list, environment: dict, log: Path) -> subprocess.Popen:
        if self._lab:
            command, environment = [LAB, "exec", str(self.number), *command], {**environment, "GLOO_SOCKET_IFNAME": "eth0"}
        with open(log, "w") as out:
            self._processes.append(subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True))
        return self._processes[-1]

    def kill(self) -> None:
        """Kills the processes, with what they have started."""
        for p in self._processes:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:  # it has ended
                pass
            p.wait()
        self._processes = []

    def lose(self) -> None:
        """Takes away the host with all that it has in memory."""
        self.link("down")
        self.kill()
        shutil.rmtree(self.root, ignore_errors=True)

    def link(self, state: str) -> None:
        if self._lab:
            subprocess.run(["ip", "-n", "volleybench-hub", "link", "set", f"p{self.number}", state], check=True)


class Job:
    """The ranks of a training run. Rank 0 is at the first host."""

    def __init__(self, directory: Path, name: str, hosts: List[Host], steps: int, seed: int, out: Path) -> None:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        path = f"{HERE.parents[1] / 'python'}:{os.environ.get('PYTHONPATH', '')}"
        self._ranks, self._logs = [], [directory / f"{name}-rank{r}.log" for r in range(HOSTS * RANKS)]
        self._end = time.monotonic() + PATIENCE
        for r, log in enumerate(self._logs):
            host = hosts[r // RANKS]
            place = {"RANK": r, "WORLD_SIZE": HOSTS * RANKS, "MASTER_ADDR": hosts[0].address, "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
            environment = {**os.environ, "PYTHONPATH": path, **{k: str(v) for k, v in place.items()}}
            self._ranks.append(host.start([sys.executable, HERE / "train.py", host.root, str(steps), str(seed), out], environment, log))

    def says(self, word: str) -> str:
        """Waits until rank 0 prints a line that begins with the word, and returns the line."""
        while True:
            for line in self._logs[0].read_text().splitlines():
                if line.startswith(word):
                    return line
            self._check()
            time.sleep(0.02)

    def wait(self) -> None:
        while any(p.poll() is None for p in self._ranks):
            self._check()
            time.sleep(0.02)
        self._check()

    def _check(self) -> None:
        """Raises Failed if a rank has failed, or the job takes too long."""
        for p, log in zip(self._ranks, self._logs):
            if p.poll():
                raise Failed(f"a rank failed with exit code {p.returncode}: {log}\n{log.read_text()}")
        if time.monotonic() > self._end:
            raise Failed(f"the job has not ended in {PATIENCE} s: {self._logs[0]}")


def train(directory: Path, steps: int, seed: int, out: Path, lab: bool, losses: Sequence[int] = (), seconds: float = 0) -> float:
    """Trains to the end, and returns how long the last job trained.

    Before, each of `losses` is how many hosts a job loses, at a moment of so many seconds.
    """
    directory.mkdir()
    machines = [Host(n, directory, lab) for n in range(HOSTS + LOST)]
    hosts, spare = machines[:HOSTS], machines[HOSTS:]
    chance = random.Random(seed)
    try:
        for turn, lost in enumerate(losses):
            job = Job(directory, f"job{turn}", hosts, steps, seed, out)
            job.says("joined" if turn else "begins")
            moment = chance.uniform(0, seconds)
            time.sleep(moment)
            victims = chance.sample(range(HOSTS), lost)
            for v in victims:
                hosts[v].lose()
            time.sleep(chance.uniform(0, 1))  # until an engine notices, and ends the job
            for h in hosts:
                h.kill()
            for v in victims:
                hosts[v] = spare.pop()
            chance.shuffle(hosts)
            print(f"hosts {victims} lost after {moment:.2f} s", end="; ", flush=True)
        job = Job(directory, "job", hosts, steps, seed, out)
        print(f"the job {job.says('begins')}", end="; ", flush=True)
        begun = time.monotonic()
        job.wait()
        return time.monotonic() - begun
    finally:
        for h in machines:
            h.kill()
            h.link("up")


def compare(directory: Path, steps: int, seed: int, lab: bool) -> None:
    """Trains undisturbed and with losses, and compares the weights."""
    print(f"seed {seed}: ", end="", flush=True)
    took = train(directory / "undisturbed", steps, seed, directory / "want.pt", lab)
    print(f"it trains for {took:.2f} s\n  ", end="", flush=True)
    train(directory / "disturbed", steps, seed, directory / "got.pt", lab, [LOST] if seed % 2 else [1] * LOST, took)
    want, got = torch.load(directory / "want.pt"), torch.load(directory / "got.pt")
    if want.keys() != got.keys() or not all(torch.equal(want[k], got[k]) for k in want):
        raise Failed(f"the weights differ: {directory}")
    print("the weights are the same", flush=True)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--seed", type=int, default=random.randrange(1 << 20), help="of the first run (default: random)")
    p.add_argument("--lab", metavar="RATE", help="such as 200mbit")
    a = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # no rank is left behind
    try:
        if a.lab and subprocess.run([LAB, "up", str(HOSTS + LOST), a.lab, "0"]).returncode:
            raise SystemExit(1)  # it has said why
        for seed in range(a.seed, a.seed + a.runs):
            directory = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="survive."))
            try:
                compare(directory, a.steps, seed, bool(a.lab))
            except Failed as e:
                raise SystemExit(f"\nseed {seed}: {e}")
            except BaseException:
                shutil.rmtree(directory)
                raise
            shutil.rmtree(directory)
    finally:
        if a.lab:
            subprocess.run([LAB, "down"])
    print(f"{a.runs} runs: the weights are identical to the bit")


if __name__ == "__main__":
    main()
