"""torch.distributed.checkpoint on directories of nodes: saved by some ranks and nodes, loaded by others, after losses."""

from __future__ import annotations

import logging
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
    reports, futures = [], []
    writer = volley.torch.Writer(root(base, rank, count, nodes), tolerate=2, retain=2)
    for step, s in [(step, state(step)) for step in steps]:
        if wait:
            dcp.save(s, checkpoint_id=step, storage_writer=writer)
            reports.append(writer.report and writer.report.nodes)
        else:  # each waits for the one before
            futures.append(dcp.async_save(s, checkpoint_id=f"job/step-{step}", storage_writer=writer))
    for future in futures:
        future.result()
    return reports or [writer.report and writer.report.step]


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


def layouts() -> dict[str, Any]:
    """Tensors of which some lie in their files as in memory, and others do not."""
    rows = torch.arange(24.0).reshape(6, 4)
    return {
        "rows": rows, "turned": rows.t(), "some": rows[2:5], "strided": rows[:, 1:3], "twice": rows[0].expand(3, 4), "empty": rows[:0],
        "one": torch.tensor(7, dtype=torch.int16), "conjugate": torch.complex(rows, -rows).conj(), "unsigned": torch.arange(9).to(torch.uint16),
        "half": rows.to(torch.float16), "bits": rows > 5,
    }


def load_layouts(rank: int, base: Path) -> list[str]:
    """Returns what is not as it was saved, loaded into tensors of several kinds."""
    at, saved, placed = root(base, rank, 2, 2), layouts(), set()
    dcp.save(saved, checkpoint_id=1, storage_writer=volley.torch.Writer(at, tolerate=1))
    reader = volley.torch.Reader(at)
    place = reader._placed
    reader._placed = lambda item, planner: place(item, planner) and not placed.add(item.storage_index.fqn)
    wrong = []
    for kind, room in {
        "like it": torch.zeros_like,
        "row after row": lambda t: torch.zeros(t.shape, dtype=t.dtype),
        "every other": lambda t: torch.zeros((*t.shape, 2), dtype=t.dtype)[..., 0],
        "of another type": lambda t: torch.zeros(t.shape, dtype=torch.complex128 if t.is_complex() else torch.int64 if t.dtype is torch.uint16 else torch.float64),
    }.items():
        s = {name: room(t) for name, t in saved.items()}
        dcp.load(s, storage_reader=reader)
        wrong += [f"{name} {kind}" for name, t in saved.items() if not torch.equal(s[name], t.to(s[name].dtype))]
    everyone: list[Any] = [None, None]
    dist.all_gather_object(everyone, placed)
    if not {"rows", "some", "one", "half", "bits"} <= set().union(*everyone):
        wrong.append(f"read into its place: {everyone}")
    return wrong


def test_layouts(tmp_path: Path) -> None:
    assert ranks.run(load_layouts, 2, tmp_path) == [[]] * 2


def train_on(rank: int, base: Path) -> Any:
    s = state(1)
    writer = volley.torch.Writer(root(base, rank, 2, 2), tolerate=1)
    write = writer.write_data
    changed = threading.Event()
    writer.write_data = lambda *plan: (changed.wait(60), write(*plan))[1]  # nothing is written before the next step
    saved = dcp.async_save(s, checkpoint_id=1, storage_writer=writer)
    for name in SHAPES:
        s[name].to_local().add_(1)
    s["all"].add_(1)
    changed.set()
    saved.result()
    return load(rank, base, 2, 2)


def test_async_has_a_copy(tmp_path: Path) -> None:
    """The state that async_save was given is saved, also where it lies in the host's memory and the next step changes it."""
    assert ranks.run(train_on, 2, tmp_path) == [(1, True)] * 2


def test_async_without_waiting(tmp_path: Path) -> None:
    assert ranks.run(save, 6, tmp_path, 6, 3, [1, 2, 3], False) == [[3]] * 6
    assert names(tmp_path) == {f"host{n}": ["step-2", "step-3"] for n in range(3)}


def failing(rank: int, base: Path) -> list[str]:
    texts = []

    def expect(call: Any) -> None:
        try:
            call()
        except BaseException as e:
            texts.append(f"{type(e).__name__}: {e}")

    at = root(base, rank, 4, 4)
    logged: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())
    logging.getLogger("volley").addHandler(handler)
    expect(lambda: volley.torch.Writer(at, tolerate=4))
    expect(lambda: volley.torch.Reader(at, 7))
    expect(lambda: volley.torch.Writer(at, tolerate=1 + rank // 3))
    expect(lambda: volley.torch.Writer(at, tolerate=rank))
    expect(lambda: volley.torch.Writer(at, tolerate=1, port=7000 + rank // 2))
    expect(lambda: volley.torch.Writer(at, tolerate=1, retain=-rank if rank > 1 else 2))
    writer = volley.torch.Writer(at, tolerate=1)
    expect(lambda: dcp.save(state(1), checkpoint_id=rank, storage_writer=writer))
    expect(lambda: dcp.save(state(1), checkpoint_id="x", storage_writer=writer))
    expect(lambda: dcp.save(state(1), storage_writer=writer))
    expect(lambda: dcp.async_save(state(1), storage_writer=writer))
    expect(lambda: dcp.save({**state(1), "no": (lambda: 0) if rank == 2 else 0}, checkpoint_id=1, storage_writer=writer))
    dcp.save(state(1), checkpoint_id=1, storage_writer=writer)
    expect(lambda: dcp.save(state(1), checkpoint_id=1, storage_writer=writer))
    expect(lambda: dcp.load(state(0), checkpoint_id=2, storage_reader=volley.torch.Reader(at)))
    texts.append("\n".join(logged))
    return texts


def test_wrong_uses(tmp_path: Path) -> None:
    everyone = ranks.run(failing, 4, tmp_path)
    arguments = ["tolerate=1, and rank 3 tolerate=2", "rank 0: tolerate=0", "port=7000, and rank 2 port=7001", "rank 2: retain=-2: want a whole number, 0 or more; rank 3: retain=-3", "checkpoint_id=0, and rank 1 checkpoint_id=1", "checkpoint_id='x'"]
    wants = ["takes 5 or more", "step-7 is at no node that can be read", *arguments, "no checkpoint_id", "no checkpoint_id", "rank 2: ", "step-1 is there", "the reader has step-1", "step-1, write_data: rank 2: "]
    assert all(isinstance(e, list) and len(e) == len(wants) for e in everyone), everyone
    assert all(e[i] == everyone[0][i] and e[i].startswith("ValueError: ") for e in everyone for i in [0, *range(2, 2 + len(arguments))]), everyone
    for want, text in zip(wants, everyone[0]):
        assert want in text, (want, text)
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
writer = volley.torch.Writer(test_dcp.root(base, rank, 8, 4), tolerate=1)
dcp.save(test_dcp.state(1), checkpoint_id=1, storage_writer=writer)
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
