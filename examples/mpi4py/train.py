#!/usr/bin/env python3
"""train.py ROOT OUT STEPS EVERY: a training run under mpirun that keeps its checkpoints as arrays in memory.

    mpirun -n 4 python3 examples/mpi4py/train.py /dev/shm/train result 300 25

A linear model of many features learns by Adam. Each rank has a part of the features, with their weights and moments. A
checkpoint is an array below /dev/shm, so that it outlives the process: ROOT/node.RANK stands for the memory of a node.
There are two, with their parity, and they take turns. The parity is computed while the training goes on. After the loss
of up to two ranks, with their directories, the same command goes on.

Rank 0 prints the loss of each step in hexadecimal, so that runs can be compared to the bit. Each rank writes its
weights to OUT.RANK.
"""
import os
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

import volley
import volley.mpi

FEATURES, BATCH, TOLERATE = 20_000, 16, 2  # of each rank; of all; ranks that may be lost
STATE = np.dtype([("step", "i8"), ("weights", "f8", FEATURES), ("mean", "f8", FEATURES), ("square", "f8", FEATURES)])

world = MPI.COMM_WORLD


class Checkpoint:
    """A state and its parity, as arrays in files. They are lost where the files were not there."""

    def __init__(self, path: Path) -> None:
        self.lost = not path.with_suffix(".state").exists()
        self.state = self.map(path.with_suffix(".state"), STATE, 1)
        self.parity = self.map(path.with_suffix(".parity"), np.dtype("u1"), volley.mpi.parity_bytes(world, [self.state], TOLERATE))

    def map(self, path: Path, dtype: np.dtype, length: int) -> np.ndarray:
        there = path.exists() and path.stat().st_size == length * dtype.itemsize
        self.lost = self.lost or not there
        return np.memmap(path, dtype, "r+" if there else "w+", shape=(length,))

    def recover(self) -> int:
        """Returns the step that comes back, at all ranks; -1 where none does."""
        try:
            volley.mpi.recover_buffers(world, [self.state], self.parity, self.lost)
            return int(self.state["step"][0])
        except volley.Refused as e:
            if world.rank == 0 and not self.lost:
                print(f"a checkpoint does not come back: {e}")
            return -1


def train(state: np.ndarray) -> float:
    """Trains a step, and returns the loss. Ranks add up in their order, so that every run adds alike."""
    step = int(state["step"][0]) + 1
    inputs = np.random.default_rng([step, world.rank]).standard_normal((BATCH, FEATURES))
    weights, mean, square = state["weights"][0], state["mean"][0], state["square"][0]
    miss = sum(world.allgather(inputs @ (weights - 1)))  # the model to learn is all ones
    gradient = inputs.T @ miss / BATCH
    mean[:] = 0.9 * mean + 0.1 * gradient
    square[:] = 0.999 * square + 0.001 * gradient**2
    weights -= 1e-3 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    state["step"] = step
    return float(miss @ miss)


def main(root: str, out: str, steps: int, every: int) -> None:
    node = Path(root, f"node.{world.rank}")
    node.mkdir(parents=True, exist_ok=True)
    checkpoints = [Checkpoint(node / str(i)) for i in range(2)]
    found = [c.recover() for c in checkpoints]
    newest = found.index(max(found))
    state = checkpoints[newest].state.copy() if found[newest] >= 0 else np.zeros(1, STATE)
    pids = world.gather(os.getpid())
    if world.rank == 0:
        print(f"begins after step {state['step'][0]}, processes", *pids, flush=True)
    request = None
    while (step := int(state["step"][0])) < steps:
        loss = train(state)
        if world.rank == 0:
            print(step + 1, loss.hex(), flush=True)
        if (step + 1) % every == 0:
            if request:
                request.wait()  # the newest is in force: the other one may be written
            newest = 1 - newest
            checkpoints[newest].state[:] = state
            request = volley.mpi.protect_buffers_start(world, [checkpoints[newest].state], TOLERATE, checkpoints[newest].parity)
    if request:
        request.wait()
    state["weights"].tofile(f"{out}.{world.rank}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
