"""Checkpoints of a job under torch.distributed, in the memory of its nodes.

    ckpt = volley.torch.Checkpointer("/dev/shm/ckpt", tolerate=2, retain=2)      # in every rank
    step, state = ckpt.load_latest() or (0, None)                                # brings back what lost nodes had
    ...
    job = ckpt.save(model.state_dict(), step)                                    # protects in the background

    with ckpt.directory(step) as d:                                              # files that others write
        model.save_pretrained(d)

With torch.distributed.checkpoint (DCP), from PyTorch 2.6 on, other numbers of ranks and nodes may load:

    dcp.save(state, checkpoint_id=step, storage_writer=volley.torch.Writer("/dev/shm/ckpt", tolerate=2))
    dcp.load(state, storage_reader=volley.torch.Reader("/dev/shm/ckpt"))

All ranks call these functions, and `Job.wait`, together, like the functions of torch.distributed.
"""

from __future__ import annotations

import copy
import io
import os
import re
from collections import OrderedDict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Sequence, Tuple, Union

import torch

from ._nodes import Job, Nodes, Options, Thread, tried
from ._run import Refused, RunFailed

if TYPE_CHECKING:
    from ._dcp import Reader, Writer

__all__ = ["Checkpointer", "Job", "Reader", "Writer"]


def __getattr__(name: str) -> Any:
    if name in ("Reader", "Writer"):  # what they are made of is not in every PyTorch
        from . import _dcp

        return getattr(_dcp, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Checkpointer:
    """Keeps the checkpoints of a job as snapshots `step-N` below a directory of each node.

    Any `tolerate` of the nodes may be lost, with their processes and directories. A node is the ranks that see the
    same `root`, such as a directory in /dev/shm. `retain` snapshots are kept, all for 0.

    `address` is where others reach the host of rank 0: MASTER_ADDR, unless given. `port` is where a run meets there:
    any, unless given, and the other ports are then those of the flag `--port`.

    `digest` is xxh3 unless given, which finds accidents; with `--key` in `flags` it is sha256.

    `nice` and `limit_rate` bound what a protection takes from the training at each node: it lowers its priority, and sends
    so many bytes a second, such as "100MB". `nice` is 10 unless given. What `load_latest` does has no bound. GOMAXPROCS in
    the environment bounds the cores of each process of Volley.
    `flags` are others of the command line, such as `["--timeout", "5m"]`.

    All ranks call it together, after `torch.distributed.init_process_group`, with the same arguments. Only `root` may
    differ. Raises ValueError at all ranks where one has other arguments, or some that cannot be.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        tolerate: int,
        retain: int = 2,
        *,
        digest: Optional[str] = None,
        address: Optional[str] = None,
        port: int = 0,
        nice: Optional[int] = None,
        limit_rate: Union[str, int, None] = None,
        flags: Sequence[str] = (),
    ) -> None:
        self.root = Path(root).absolute()
        self._options = Options(tolerate, retain, digest, nice, limit_rate, port, tuple(flags))
        self._nodes = self._options.agreed(lambda: Nodes(self.root, address, port, flags))
        self._host = _Host()
        self.job: Optional[Job] = None  # the last one that was begun

    def _finish(self) -> None:
        """Waits for the protection before, and raises its error unless that has been raised."""
        if self.job and not self.job.waited:
            self.job.wait()

    def save(self, state: Any, step: int) -> Job:
        """Writes the state of each rank, as torch.save does, and begins to protect the snapshot of this step.

        Returns when all ranks have written. If the protection before still runs, it waits for that first, and raises
        its error unless `Job.wait` has. Steps are 0 or more, and each is saved once.

        Raises `volley.RunFailed` at all ranks if one cannot write, such as for want of space.
        """
        self._finish()
        self._nodes.agree(tried(lambda: self._nodes.begin(step)))
        self._write(state, step)
        self.job = self._nodes.protect(step, self._options)
        return self.job

    def async_save(self, state: Any, step: int) -> Job:
        """Copies the state of each rank to the host's memory, and writes and protects it beside what follows.

        Returns when this rank has its copy. The copies lie in memory that each call uses again, as much as one state
        takes, pinned for what comes from a GPU. Everything else is as for `save`; `Job.wait` raises what that would.
        """
        self._finish()
        error, mine = tried(lambda: self._nodes.begin(step)), self._host.copied(state)
        job = self.job = Job(self._nodes, step, "protect")

        def write() -> None:
            self._nodes.agree(error)
            self._write(mine, step)
            self._nodes.protect(step, self._options, job)

        job.writing = Thread(write)
        return job

    @contextmanager
    def directory(self, step: int) -> Iterator[Path]:
        """Gives the directory of this node, for the files of a snapshot that others write.

            with ckpt.directory(step) as d:
                safetensors.torch.save_file(tensors, d / f"rank-{rank}.safetensors")
            ckpt.job.wait()

        When all ranks have left it, the directory gets its name, and `job` is its protection, which has begun. If a rank
        leaves it by an error, nothing is kept, and the other ranks raise `volley.RunFailed`.
        """
        self._finish()
        self._nodes.agree(tried(lambda: self._nodes.begin(step)))
        try:
            yield self._nodes.writing(step)
        except BaseException as e:
            try:
                self._nodes.commit(step, str(e) or repr(e))
            except RunFailed:  # which the others raise
                pass
            raise
        self._nodes.commit(step, "")
        self.job = self._nodes.protect(step, self._options)

    def _write(self, state: Any, step: int) -> None:
        error = ""
        try:
            torch.save(state, self._nodes.writing(step) / f"rank-{self._nodes.rank}.pt")
        except Exception as e:  # whatever a pickle raises
            error = str(e) or repr(e)
        self._nodes.commit(step, error)

    def load_latest(self, map_location: Any = "cpu") -> Optional[Tuple[int, Any]]:
        """Brings back what lost nodes had of the newest snapshot, and returns its step and this rank's state.

        Returns None where no snapshot was ever in force or complete. torch.load reads the state, and runs what a pickle
        says: protect a job only between hosts that you trust. The number of nodes may be another one than before, the
        number of ranks not: `Reader` takes any.

        Raises `volley.Refused` or `volley.RunFailed` where there are snapshots, and none can be brought back, or the newest
        cannot be read or written now and may not be lost, or other ranks have saved it. Nothing is moved away then.
        """
        self._finish()
        nodes = self._nodes
        brought = nodes.bring_back()
        if brought is None:
            return None
        step = brought
        has = {name: member for name, member in nodes.files(step).items() if re.fullmatch(r"rank-\d+\.pt", name)}
        names = [f"rank-{r}.pt" for r in range(len(nodes.leaders))]
        if set(has) != set(names):
            raise Refused(f"step-{step} has the states of {len(has)} ranks, and this job has {len(names)}: start it with {len(has)} ranks, or move the snapshot away", 2, "checkpoint")
        sources = [has[name] for name in names]
        mine: Any = nodes.path(sources[nodes.rank], step) / names[nodes.rank]
        moves = [(source, r) for r, (source, _) in enumerate(sources) if source != nodes.leaders[r]]  # at another host than before

        def give(i: int) -> torch.Tensor:
            r = moves[i][1]
            return torch.from_file(str(nodes.path(sources[r], step) / names[r]), size=(nodes.path(sources[r], step) / names[r]).stat().st_size, dtype=torch.uint8)

        def take(i: int, data: torch.Tensor) -> None:
            nonlocal mine
            mine = io.BytesIO(data.numpy().tobytes())

        nodes.move(moves, give, take)
        error, state = "", None
        try:
            state = torch.load(mine, map_location=map_location)
        except Exception as e:
            error = f"step-{step}, {names[nodes.rank]}: {e}"
        nodes.agree(error)
        return step, state


class _Host:
    """Copies of a state in the memory of the host. The next copy takes the memory of the last one."""

    def __init__(self) -> None:
        self._memory: List[torch.Tensor] = []
        self._used = 0

    def copied(self, state: Any) -> Any:
        """Returns the state with copies of its tensors. What shares memory does so no more."""
        self._used = 0
        copies = self._copy(state)
        del self._memory[self._used :]
        if any(t.is_pinned() for t in self._memory):
            torch.cuda.synchronize()
        return copies

    def _copy(self, value: Any) -> Any:
        if type(value) in (torch.Tensor, torch.nn.Parameter):
            return self._tensor(value.detach())
        if isinstance(value, dict):
            return type(value)((k, self._copy(v)) for k, v in value.items()) if type(value) in (dict, OrderedDict) else copy.deepcopy(value)
        if type(value) in (list, tuple):
            return type(value)(self._copy(v) for v in value)
        return copy.deepcopy(value)

    def _tensor(self, t: torch.Tensor) -> torch.Tensor:
        i = self._used
        self._used += 1
        if i == len(self._memory):
            self._memory.append(torch.empty(0))
        old = self._memory[i]
        if old.shape != t.shape or old.dtype != t.dtype:
            self._memory[i] = torch.empty(t.shape, dtype=t.dtype, pin_memory=t.is_cuda)
        return self._memory[i].copy_(t, non_blocking=True)
