"""Checkpoints of jobs under torch.distributed: six ranks on three nodes, which are directories."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import ranks  # noqa: E402
import volley.torch  # noqa: E402
from volley import _nodes  # noqa: E402

RANKS, NODES = 6, 3


def state(rank: int, step: int) -> dict[str, Any]:
    return {"rank": rank, "step": step, "weights": torch.arange(5000.0) * step + rank}


def same(a: Any, rank: int, step: int) -> bool:
    b = state(rank, step)
    return a["rank"] == rank and a["step"] == step and torch.equal(a["weights"], b["weights"])


def checkpointer(rank: int, root: Path, order: tuple[int, ...] = (0, 1, 2), **options: Any) -> volley.torch.Checkpointer:
    return volley.torch.Checkpointer(root / f"host{order[rank // (RANKS // NODES)]}", **{"tolerate": 1, **options})


def save(rank: int, root: Path, steps: list[int]) -> list[Any]:
    c = checkpointer(rank, root)
    assert c.load_latest() is None
    jobs = [c.save(state(rank, step), step) for step in steps]  # each waits for the one before
    report = jobs[-1].wait()
    assert jobs[-1].done and jobs[-1].wait() == report
    return [report.step, report.nodes, report.removed]


def load(rank: int, root: Path, order: tuple[int, ...] = (0, 1, 2)) -> Any:
    got = checkpointer(rank, root, order).load_latest()
    return got and (got[0], same(got[1], rank, got[0]))


def steps(root: Path) -> list[list[str]]:
    return [sorted(d.name for d in (root / f"host{n}").iterdir()) for n in range(NODES)]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    assert ranks.run(save, RANKS, tmp_path, [10, 20, 30]) == [[30, NODES, [10]]] * RANKS
    return tmp_path


def test_lost_node_comes_back(saved: Path) -> None:
    assert steps(saved) == [["step-20", "step-30"]] * NODES
    shutil.rmtree(saved / "host1")
    assert ranks.run(load, RANKS, saved) == [(30, True)] * RANKS


def test_too_many_lost(saved: Path) -> None:
    shutil.rmtree(saved / "host1")
    shutil.rmtree(saved / "host2")
    errors = ranks.run(load, RANKS, saved)
    assert len({str(e) for e in errors}) == 1 and all(isinstance(e, volley.Refused) and e.code == 2 for e in errors)
    assert "step-30" in str(errors[0]) and steps(saved)[0] == ["step-20", "step-30"]


def wrong_uses(rank: int, root: Path) -> list[str]:
    texts = []

    def expect(kind: type[Exception], call: Any) -> None:
        try:
            call()
        except kind as e:
            texts.append(str(e))

    expect(ValueError, lambda: volley.torch.Checkpointer(root / "one", tolerate=1))
    expect(ValueError, lambda: checkpointer(rank, root, tolerate=3))
    expect(volley.RunFailed, lambda: volley.torch.Checkpointer(root / "file" / "x" if rank == 4 else root / f"x{rank}", tolerate=1))
    c = checkpointer(rank, root)
    expect(volley.RunFailed, lambda: c.save({}, -1))
    expect(volley.RunFailed, lambda: c.save(lambda: 0 if rank == 3 else {}, 1))  # cannot be pickled
    c.save(state(rank, 1), 1).wait()
    expect(volley.RunFailed, lambda: c.save({}, 1))
    return texts


def test_wrong_uses(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    everyone = ranks.run(wrong_uses, RANKS, tmp_path)
    assert everyone == [everyone[0]] * RANKS
    one, many, file, negative, pickle, again = everyone[0]
    assert "ranks see 1 directory:" in one and "takes 4 or more" in many
    assert file.startswith("rank 4: ") and "file" in file
    assert "step -1" in negative and ("pickle" in pickle or "local object" in pickle) and "step-1 is there" in again
    assert steps(tmp_path) == [["step-1"]] * NODES  # nothing of what failed is left


def watched(rank: int, root: Path) -> list[Any]:
    c = checkpointer(rank, root, nice=3, limit_rate="50MB", flags=["--progress", "1ns"])
    job = c.save({"more": torch.rand(250_000)}, 1)
    begun = job.progress.fraction
    job.wait()
    low = checkpointer(rank, root, limit_rate=1000)
    low.load_latest()  # has no bound
    try:
        low.save({}, 2).wait()
    except volley.Refused as e:
        return [0 <= begun <= 1, job.progress.total // 1_000_000, job.progress.fraction, "--limit-rate" in str(e)]
    return []


def test_progress_and_limits(tmp_path: Path) -> None:
    first, other = [True, 2, 1.0, True], [True, 0, 0.0, True]
    assert ranks.run(watched, RANKS, tmp_path) == [first, other] * NODES


def cancelled(rank: int, root: Path) -> list[Any]:
    c = checkpointer(rank, root)
    c.save(state(rank, 1), 1).wait()
    job = c.save({**state(rank, 2), "more": torch.rand(5_000_000)}, 2)
    job.cancel()
    try:
        job.wait()
    except volley.Cancelled as e:
        failed = e.code
    c.save(state(rank, 3), 3).wait()  # the error has been raised, and is not raised again
    job = c.save({**state(rank, 4), "more": torch.rand(5_000_000)}, 4)
    job.cancel()
    try:
        c.save(state(rank, 5), 5)
    except volley.Error as e:
        return [failed > 0, e.code > 0, len(os.listdir(c.root))]
    return []


def test_cancel(tmp_path: Path) -> None:
    assert ranks.run(cancelled, RANKS, tmp_path) == [[True, True, 4]] * RANKS
    assert ranks.run(load, RANKS, tmp_path)[0][0] >= 3


def beside(rank: int, root: Path) -> list[Any]:
    c = checkpointer(rank, root)
    weights = torch.full((1000,), 1.0)
    jobs = []
    for step in (1, 2, 3):
        jobs.append(c.async_save({"rank": rank, "step": step, "weights": weights, "list": [weights, (step,)]}, step))
        weights.add_(1)  # as the next step does
    report = jobs[-1].wait()
    got = c.load_latest()
    assert got
    return [report.step, jobs[-1].done, got[0], bool(torch.equal(got[1]["weights"], torch.full((1000,), 3.0))), got[1]["list"][1]]


def test_async(tmp_path: Path) -> None:
    assert ranks.run(beside, RANKS, tmp_path) == [[3, True, 3, True, (3,)]] * RANKS
    assert steps(tmp_path) == [["step-2", "step-3"]] * NODES


def others_write(rank: int, root: Path, broken: int) -> list[Any]:
    c = checkpointer(rank, root)
    text = ""
    try:
        with c.directory(5) as d:
            (d / f"of-{rank}").write_text("words")
            if rank == broken:
                raise KeyError("mine")
    except Exception as e:
        return [type(e).__name__, str(e)]
    assert c.job
    return [c.job.wait().step, text]


def test_directory(tmp_path: Path) -> None:
    got = ranks.run(others_write, RANKS, tmp_path, 4)
    assert got == [["KeyError", "'mine'"] if r == 4 else ["RunFailed", "rank 4: 'mine'"] for r in range(RANKS)]
    assert steps(tmp_path) == [[]] * NODES
    assert ranks.run(others_write, RANKS, tmp_path, -1) == [[5, ""]] * RANKS
    assert sorted(f.name for f in (tmp_path / "host1" / "step-5").iterdir()) == [".volley", "of-2", "of-3"]


def started() -> list[int]:
    return [p.pipes.pid for p in _nodes._processes]


def one_process(rank: int, root: Path) -> list[Any]:
    c, pids = checkpointer(rank, root, nice=0), []
    for step in (1, 2, 3, 4):
        c.save(state(rank, step), step).wait()
        pids.append(started())
        if step == 2:
            first = [p.pipes for p in _nodes._processes]
            multiprocessing.get_context("fork").Process(target=signal.pause, daemon=True).start()  # it has the pipes, too
            if rank == 2:
                first[0].kill()
                first[0].wait()
        dist.barrier()
    assert c.load_latest()
    pids.append(started())
    for process in first:
        process.wait(10)
    return pids


def test_one_process_for_all(tmp_path: Path) -> None:
    """A node's process does all of its runs. When one has been killed, the next run starts others, and the rest end."""
    for rank, got in enumerate(ranks.run(one_process, RANKS, tmp_path)):
        one, two, three, four, loaded = got
        assert one == two and three == four == loaded and len(one) == len(three) == (rank % 2 == 0), got
        assert one != three or rank % 2, got


def killed(rank: int, root: Path) -> None:
    c = checkpointer(rank, root)
    for step in range(1, 1000):
        c.save(state(rank, step), step)
        if step == 5:
            (root / f"pids{rank}").write_text(" ".join(map(str, started())))
            (root / f"ready{rank}").touch()


def test_killed(tmp_path: Path) -> None:
    processes, _ = ranks.start(killed, RANKS, tmp_path)
    while len(list(tmp_path.glob("ready*"))) < RANKS:
        time.sleep(0.01)
    for p in processes:
        os.kill(p.pid, signal.SIGKILL)
    shutil.rmtree(tmp_path / "host1", ignore_errors=True)
    for p in processes:
        p.join()
    shutil.rmtree(tmp_path / "host1", ignore_errors=True)  # its last child was writing
    pids = [pid for f in tmp_path.glob("pids*") for pid in f.read_text().split()]
    got = ranks.run(load, RANKS, tmp_path)  # at once: children of the job that was killed may be ending
    assert got == [got[0]] * RANKS and got[0][0] >= 4 and got[0][1]
    assert len(pids) >= NODES
    while any(b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids if os.path.exists(f"/proc/{pid}")):
        time.sleep(0.1)
