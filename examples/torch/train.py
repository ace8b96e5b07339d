#!/usr/bin/env python3
"""train.py ROOT STEPS SEED OUT: one rank of a small training run that keeps its checkpoints in memory.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say which rank it is. Rank 0 writes the final weights to OUT.
"""
import sys

import torch
import torch.distributed as dist

import volley.torch


def main(root: str, steps: int, seed: int, out: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        print("joined", flush=True)
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    checkpoints = volley.torch.Checkpointer(root, tolerate=2, retain=2)
    step, state = checkpoints.load_latest() or (0, None)
    if state:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    if rank == 0:
        print(f"begins after step {step}", flush=True)
    while step < steps:
        batch = torch.Generator().manual_seed(seed * 1_000_003 + step * ranks + rank)
        inputs = torch.randn(32, 64, generator=batch)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= ranks
        optimizer.step()
        step += 1
        if step % 10 == 0:
            checkpoints.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, step)
    if rank == 0:
        torch.save(model.state_dict(), out)
        print(f"ends after step {step}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
