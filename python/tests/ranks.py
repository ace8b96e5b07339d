"""Runs a function in the ranks of a job under torch.distributed, as processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import socket
from typing import Any, Callable

import torch
import torch.distributed as dist


def _rank(function: Callable[..., Any], rank: int, ranks: int, port: int, answers: Any, arguments: Any) -> None:
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(ranks))
    dist.init_process_group("gloo")
    try:
        answers.put((rank, function(rank, *arguments), None))
    except BaseException as e:
        answers.put((rank, None, e))
    dist.barrier()
    dist.destroy_process_group()


def start(function: Callable[..., Any], ranks: int, *arguments: Any) -> tuple[list[Any], Any]:
    """Starts the ranks, and returns their processes and the queue of what they answer."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    processes = [context.Process(target=_rank, args=(function, r, ranks, port, answers, arguments)) for r in range(ranks)]
    for p in processes:
        p.start()
    return processes, answers


def run(function: Callable[..., Any], ranks: int, *arguments: Any) -> list[Any]:
    """Returns what the function returns at every rank: an exception where it raises one."""
    processes, answers = start(function, ranks, *arguments)
    try:
        got = {rank: error or value for rank, value, error in (answers.get(timeout=300) for _ in processes)}
    finally:
        for p in processes:
            p.join(60)
            p.kill()
    return [got[r] for r in range(ranks)]
