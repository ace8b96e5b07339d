#!/usr/bin/env python3
"""survive.py [--runs N] [--seed S] PROGRAM ROOT OUT ARGUMENT...: loses one or two of four processes, and goes on.

    survive.py --runs 10 ./solver ROOT OUT 1024 300 25
    survive.py --runs 10 python3 ../mpi4py/train.py ROOT OUT 300 25

ROOT and OUT become paths below /dev/shm. Each run has another seed. It runs the program once undisturbed. Then it runs it
again and kills one or two processes with SIGKILL after a random iteration, whereupon mpirun ends the others. It removes the
directories of these processes, and starts the same command anew. Every residual that was printed, and the result, have to
be the same, to the bit.
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

RANKS = 4


class Job:
    """A run of the program under mpirun."""

    def __init__(self, program: list, root: Path, out: Path) -> None:
        paths = {"ROOT": str(root), "OUT": str(out)}
        command = ["mpirun", "--oversubscribe", "-n", str(RANKS), *(paths.get(a, a) for a in program)]
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.pids: list = []
        self.residuals: dict = {}
        for line in self.process.stdout:
            print("" if line.startswith("begins") else line, end="")
            if line.startswith("begins"):
                self.begun, pids = line.split(", processes ")
                self.pids = [int(p) for p in pids.split()]
                return
        self.end()

    def read(self, until: int) -> None:
        """Reads the residuals, up to that of an iteration."""
        for line in self.process.stdout:
            iteration, residual = line.split()
            self.residuals[int(iteration)] = residual
            if int(iteration) == until:
                return

    def end(self, killed: bool = False) -> None:
        """Reads all residuals, and waits for the end."""
        self.read(-1)
        if self.process.wait() and not killed:
            self.log.seek(0)
            raise SystemExit(f"{self.process.args}:\n{self.log.read()}")


def lose(job: Job, moment: random.Random, iterations: list, seconds: float, root: Path) -> None:
    """Kills one or two processes within or after one of the iterations, and removes their directories."""
    lost = moment.sample(range(RANKS), moment.choice([1, 2]))
    job.read(moment.choice(iterations))
    time.sleep(moment.uniform(0, 2 * seconds / len(iterations)))
    for r in lost:
        try:
            os.kill(job.pids[r], signal.SIGKILL)
        except ProcessLookupError:  # it has ended, or mpirun was faster
            pass
    job.end(killed=True)
    for r in lost:
        shutil.rmtree(root / f"node.{r}")
    print(f"nodes {sorted(lost)} lost after iteration {max(job.residuals, default=0)}", flush=True)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--seed", type=int, default=random.randrange(1 << 20), help="of the first run (default: random)")
    p.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM ROOT OUT ARGUMENT...")
    a = p.parse_args()
    if not {"ROOT", "OUT"} <= set(a.program):
        p.error("name a program with its arguments ROOT and OUT")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    late = 0  # runs that found a checkpoint
    for seed in range(a.seed, a.seed + a.runs):
        directory = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="solver."))
        job = Job(a.program, directory / "undisturbed", directory / "want")
        begun = time.monotonic()
        job.end()
        took = time.monotonic() - begun
        print(f"seed {seed}: undisturbed in {took:.2f} s", flush=True)
        root = directory / "disturbed"
        disturbed = Job(a.program, root, directory / "got")
        lose(disturbed, random.Random(seed), sorted(job.residuals), took, root)
        resumed = Job(a.program, root, directory / "got")
        print(f"  the program {resumed.begun}", flush=True)
        late += resumed.begun.split()[-1] != "0"
        resumed.end()
        for run in disturbed, resumed:
            for iteration, residual in run.residuals.items():
                if residual != job.residuals[iteration]:
                    raise SystemExit(f"seed {seed}: iteration {iteration}: residual {residual}, undisturbed {job.residuals[iteration]}: {directory}")
        if set(disturbed.residuals) | set(resumed.residuals) != set(job.residuals):
            raise SystemExit(f"seed {seed}: iterations are missing: {directory}")
        for r in range(RANKS):
            if (directory / f"want.{r}").read_bytes() != (directory / f"got.{r}").read_bytes():
                raise SystemExit(f"seed {seed}: rank {r} has another result: {directory}")
        shutil.rmtree(directory)
    if not late:
        raise SystemExit("no run was far enough for a checkpoint: give more iterations, or --runs")
    print(f"{a.runs} runs, {late} from a checkpoint: residuals and results are identical to the bit")


if __name__ == "__main__":
    main()
