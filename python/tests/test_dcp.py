"""torch.distributed.checkpoint on directories of nodes: saved by some ranks and nodes, loaded by others, after losses."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if tuple(int(x) for x in torch.__version__.split("+")[0].split(".")[:2]) < (2, 6):
    pytest.skip("PyTorch 2.6 or later", allow_module_level=True)

import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import Shard, distribute_tensor  # noqa: E402

import ranks  # noqa: E402
import volley.torch  # noqa: E402

SHAPES = {"a": (37, 5), "b": (8, 3, 2), "c": (64,), "d": (5, 9)}  # that no number of ranks divides
TYPES = {"a": torch.float32, "b": torch.bfloat16, "c": torch.int64, "d": torch.float64}


def whole(name: str, step: int) -> Any:
    n = 1
    for x in SHAPES[name]:
        n *= x
    return (torch.arange(n) * 7 + step).reshape(SHAPES[name]).to(TYPES[name])


def state(step: int) -> dict[str, Any]:
    """Tensors cut among all ranks, one that all have, and other values. Without a step they are empty."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    s: dict[str, Any] = {}
    for name in SHAPES:
        s[name] = distribute_tensor(whole(name, step) if step else torch.zeros(SHAPES[name], dtype=TYPES[name]), mesh, [Shard(0)])
    s["all"] = torch.full((3,), float(step))
    s["step"], s["words"] = step, f"after {step}" if step else ""
    return s


def same(s: dict[str, Any], step: int) -> bool:
    tensors = all(torch.equal(s[name].full_tensor(), whole(name, step)) for name in SHAPES)
    return bool(tensors and torch.equal(s["all"], torch.full((3,), float(step))) and s["step"] == step and s["words"] == f"after {step}")


def root(base: Path, rank: int, ranks: int, nodes: int) -> Path:
    return base / f"host{rank * nodes // ranks}"


def save(rank: int, base: Path, count: int, nodes: int, steps: list[int], wait: bool = True) -> list[Any]:
    reports, future = [], None
    for step in steps:
        writer = volley.torch.Writer(root(base, rank, count, nodes), step, tolerate=2, retain=2)
        if wait:
            dcp.save(state(step), storage_writer=writer)
        else:
            dcp.async_save(state(step), storage_writer=writer).result()
        reports.append(writer.report and writer.report.nodes)
    return reports


def load(rank: int, base: Path, count: int, nodes: int, step: int | None = None) -> Any:
    reader = volley.torch.Reader(root(base, rank, count, nodes), step)
    if reader.step is None:
        return None
    s = state(0)
    dcp.load(s, storage_reader=reader)
    return reader.step, same(s, reader.step)


def go_on(rank: int, base: Path, count: int, nodes: int, steps: list[int]) -> Any:
    return load(rank, base, count, nodes), save(rank, base, count, nodes, steps), load(rank, base, count, nodes)


def names(base: Path) -> dict[str, list[str]]:
    return {d.name: sorted(x.name for x in d.iterdir()) for d in sorted(base.iterdir())}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    assert ranks.run(save, 8, tmp_path, 8, 4, [10, 20]) == [[4, 4]] * 8
    return tmp_path


def test_as_it_was(saved: Path) -> None:
    assert names(saved) == {f"host{n}": ["step-10", "step-20"] for n in range(4)}
    assert all((d / "step-20" / ".metadata").exists() for d in saved.iterdir())
    assert ranks.run(load, 8, saved, 8, 4) == [(20, True)] * 8
    assert ranks.run(load, 8, saved, 8, 4, 10) == [(10, True)] * 8


@pytest.mark.parametrize("count, nodes", [(8, 4), (6, 3), (10, 5), (3, 3)])
def test_other_numbers_after_two_losses(saved: Path, count: int, nodes: int) -> None:
    shutil.rmtree(saved / "host1")
    (saved / "host2").rename(saved / "host1")
    shutil.rmtree(saved / "host3")
    got = ranks.run(go_on, count, saved, count, nodes, [30, 40, 50])
    assert got == [((20, True), [nodes] * 3, (50, True))] * count
    assert names(saved) == {f"host{n}": ["step-40", "step-50"] for n in range(nodes)}  # and no root of a missing node


def test_too_many_lost(saved: Path) -> None:
    for n in (0, 1, 3):
        shutil.rmtree(saved / f"host{n}")
    before = names(saved)
    errors = ranks.run(load, 8, saved, 8, 4)
    assert all(isinstance(e, volley.Refused) and "step-20" in str(e) for e in errors), errors
    assert names(saved)["host2"] == before["host2"]


def train_on(rank: int, base: Path) -> Any:
    s = state(1)
    writer = volley.torch.Writer(root(base, rank, 2, 2), 1, tolerate=1)
    begin = writer._nodes.begin
    changed = threading.Event()
    writer._nodes.begin = lambda step: (changed.wait(60), begin(step))  # nothing is written before the next step
    saved = dcp.async_save(s, storage_writer=writer)
    for name in SHAPES:
        s[name].to_local().add_(1)
    s["all"].add_(1)
    changed.set()
    saved.result()
    return load(rank, base, 2, 2)


def test_async_has_a_copy(tmp_path: Path) -> None:
    """The state that async_save was given is saved, also where it lies in the host's memory and the next step changes it."""
    assert ranks.run(train_on, 2, tmp_path) == [(1, True)] * 2


def failing(rank: int, base: Path) -> list[str]:
    texts = []

    def expect(call: Any) -> None:
        try:
            call()
        except Exception as e:
            texts.append(f"{type(e).__name__}: {e}")

    at = root(base, rank, 4, 4)
    expect(lambda: volley.torch.Writer(at, 1, tolerate=4))
    expect(lambda: volley.torch.Reader(at, 7))
    expect(lambda: volley.torch.Writer(at, 1, tolerate=1 + rank // 3))
    expect(lambda: volley.torch.Writer(at, 1, tolerate=rank))
    expect(lambda: volley.torch.Writer(at, rank, tolerate=1))
    expect(lambda: volley.torch.Writer(at, 1, tolerate=1, port=7000 + rank // 2))
    expect(lambda: volley.torch.Writer(at, 1, tolerate=1, retain=-rank if rank > 1 else 2))
    expect(lambda: dcp.save({**state(1), "no": (lambda: 0) if rank == 2 else 0}, storage_writer=volley.torch.Writer(at, 1, tolerate=1)))
    dcp.save(state(1), storage_writer=volley.torch.Writer(at, 1, tolerate=1))
    expect(lambda: dcp.save(state(1), storage_writer=volley.torch.Writer(at, 1, tolerate=1)))
    expect(lambda: dcp.save(state(1), checkpoint_id="x", storage_writer=volley.torch.Writer(at, 2, tolerate=1)))
    return texts


def test_wrong_uses(tmp_path: Path) -> None:
    everyone = ranks.run(failing, 4, tmp_path)
    arguments = ["tolerate=1, and rank 3 tolerate=2", "rank 0: tolerate=0", "step=0, and rank 1 step=1", "port=7000, and rank 2 port=7001", "rank 2: retain=-2: want a whole number, 0 or more; rank 3: retain=-3"]
    wants = ["takes 5 or more", "step-7 is not below", *arguments, "rank 2: ", "step-1 is there", "checkpoint_id='x'"]
    assert all(isinstance(e, list) and len(e) == len(wants) for e in everyone), everyone
    assert all(e[i] == everyone[0][i] and e[i].startswith("ValueError: ") for e in everyone for i in [0, *range(2, 2 + len(arguments))]), everyone
    lost = "TypeError: cannot pickle code objects"  # what DCP of PyTorch 2.6 makes of errors under Python 3.13
    for want, text in zip(wants, everyone[0]):
        assert want in text or text == lost, (want, text)
    assert names(tmp_path) == {f"host{n}": ["step-1"] for n in range(4)}


LOSING = """
import os, sys
from pathlib import Path
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import test_dcp
import volley.torch
from volley._nodes import Nodes

base, lost = Path(sys.argv[1]), sys.argv[2:]
dist.init_process_group("gloo")
rank = dist.get_rank()
commit = Nodes.commit
def dies(nodes, step, error):
    if str(rank) in lost:
        os._exit(9)
    commit(nodes, step, error)
Nodes.commit = dies
writer = volley.torch.Writer(test_dcp.root(base, rank, 8, 4), 1, tolerate=1)
dcp.save(test_dcp.state(1), storage_writer=writer)
"""


@pytest.mark.parametrize("lost", [["2", "3"], ["4", "5"]])
def test_a_node_is_lost_while_it_saves(tmp_path: Path, lost: list[str]) -> None:
    """No rank waits for one that waits for it: all end, so that their agents see it."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    path = os.pathsep.join(str(Path(__file__).resolve().parents[n]) for n in (0, 1))
    environment = {**os.environ, "PYTHONPATH": path, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "8", "OMP_NUM_THREADS": "1"}
    processes = [subprocess.Popen([sys.executable, "-c", LOSING, str(tmp_path), *lost], env={**environment, "RANK": str(r)}, stderr=subprocess.DEVNULL) for r in range(8)]
    try:
        assert [p.wait(600) for p in processes] == [9 if str(r) in lost else 1 for r in range(8)]
    finally:
        for p in processes:
            p.kill()
