#!/usr/bin/env python3
"""elastic.py STEPS OUT: one rank of a training run under torchrun, whose number of nodes may change at any restart.

Weights and their moments are cut among all ranks, as by FSDP. torch.distributed.checkpoint keeps them below $ROOT, a
directory of this node, such as one in /dev/shm. All ranks compute the whole gradient in one order, so that the weights are the
same to the bit whatever the number of ranks. Rank 0 writes the final weights to OUT.

    torchrun --nnodes 3:4 --nproc-per-node 2 --max-restarts 100 --rdzv-backend c10d --rdzv-endpoint HOST:29400 \\
        examples/torch/elastic.py 200 weights.pt
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import volley.torch

TOLERATE, EVERY = 1, 5


def main(steps: int, out: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    root = os.environ["ROOT"]
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    draw = torch.Generator().manual_seed(7)
    shapes = {"first": (64, 33), "second": (33, 1)}
    state = {name: distribute_tensor(torch.randn(shape, generator=draw) / 8, mesh, [Shard(0)]) for name, shape in shapes.items()}
    state.update({f"{name}.moment": distribute_tensor(torch.zeros(shape), mesh, [Shard(0)]) for name, shape in shapes.items()})
    state["step"] = 0

    writer = volley.torch.Writer(root, tolerate=TOLERATE)
    reader = volley.torch.Reader(root)
    if reader.step is not None:
        dcp.load(state, storage_reader=reader)
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks begin after step {state['step']}", flush=True)
    while state["step"] < steps:
        batch = torch.Generator().manual_seed(state["step"])
        inputs = torch.randn(32, 64, generator=batch)
        whole = {name: state[name].full_tensor().requires_grad_() for name in shapes}
        loss = (torch.tanh(inputs @ whole["first"]) @ whole["second"] - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()
        for name in shapes:
            gradient = distribute_tensor(whole[name].grad, mesh, [Shard(0)]).to_local()
            moment = state[f"{name}.moment"].to_local().mul_(0.9).add_(gradient)
            state[name].to_local().sub_(0.01 * moment)
        state["step"] += 1
        if state["step"] % EVERY == 0:
            dcp.save(state, checkpoint_id=state["step"], storage_writer=writer)
    weights = {name: state[name].full_tensor() for name in shapes}
    if dist.get_rank() == 0:
        torch.save(weights, out)
        print(f"ends after step {steps}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
