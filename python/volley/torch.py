"""Checkpoints of a job under torch.distributed, in the memory of its nodes.

    ckpt = volley.torch.Checkpointer("/dev/shm/ckpt", tolerate=2, retain=2)      # in every rank
    step, state = ckpt.load_latest() or (0, None)                                # brings back what lost nodes had
    ...
    job = ckpt.save(model.state_dict(), step)                                    # protects in the background

All ranks call the constructor, `save`, `load_latest` and `Job.wait` together, like the functions of torch.distributed.
"""

from __future__ import annotations

import io
import json
import os
import queue
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist

from . import _child
from ._run import OFTEN, Progress, RunFailed, binary, documents, failure, said
from .reports import ProtectReport, read

_END_SECONDS = 5.0  # that a run has to end after a signal
_BUSY_SECONDS = 60.0  # how long load_latest waits for runs of a job that was killed


class _Outcome(NamedTuple):
    """How a rank of a run ended: `verb` of the command line, exit code, errors, and JSON, which one of all ranks has."""

    code: int
    errors: List[str]
    reports: List[Any]


class _Child(threading.Thread):
    """The child of this process that is one rank of a run.

    The thread starts it and waits for it: Linux ends a child when the thread that started it ends. It is no daemon,
    so a process that ends waits for its last protection.
    """

    def __init__(self, command: Sequence[str], secret: str) -> None:
        super().__init__(name="volley")
        self._command, self._secret = command, secret
        self.progress = Progress(0, 0)
        self._process: Optional[subprocess.Popen[str]] = None
        self._started = threading.Event()
        self.meets: queue.SimpleQueue[str] = queue.SimpleQueue()  # where rank 0 listens; "" where it does not
        self.outcome = _Outcome(1, [], [])
        self.start()
        self._started.wait()

    def run(self) -> None:
        try:
            self._run()
        except Exception as e:  # such as no memory for a process: all ranks are to hear of it
            self.outcome = _Outcome(1, [f"{socket.gethostname()}: {e}"], [])
        finally:
            self._started.set()
            self.meets.put("")

    def _run(self) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as out, subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE, encoding="utf-8", errors="replace"
        ) as process:
            self._process = process
            self._started.set()
            assert process.stdin and process.stderr
            try:
                process.stdin.write(self._secret + "\n")
                process.stdin.close()
            except BrokenPipeError:  # it has ended, and says why
                pass
            lines = []
            for line in process.stderr:
                if '"msg":"listens"' in line:
                    self.meets.put(json.loads(line)["advertise"])
                elif '"msg":"progress"' in line:
                    list(said([line], self._heard))
                else:
                    lines.append(line)
            code = process.wait()
            out.seek(0)
            if code < 0:
                lines.append(f"{socket.gethostname()}: volley was ended by signal {-code}")
            self.outcome = _Outcome(code if code >= 0 else 1, list(said(lines)), documents(out.read()))
            if code == 0:
                self.progress = Progress(self.progress.total, self.progress.total)

    def _heard(self, at: Progress) -> None:
        self.progress = at

    def cancel(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.terminate()


class Job:
    """The protection of a snapshot, which runs beside the job."""

    def __init__(self, step: int, verb: str, child: Optional[_Child], group: Any) -> None:
        self.step, self._verb, self._child, self._group = step, verb, child, group
        self._all: Optional[List[Optional[_Outcome]]] = None
        self._cancelled = False

    @property
    def waited(self) -> bool:
        """Whether `wait` has returned or raised."""
        return self._all is not None

    @property
    def done(self) -> bool:
        """Whether this node's part has ended, well or not. At ranks that are not the first of their node it is True."""
        return self._child is None or not self._child.is_alive()

    @property
    def progress(self) -> Progress:
        """How far this node's part is: `done` and `total` bytes, and their `fraction` from 0 to 1.

        It is not older than a second. At ranks that are not the first of their node, and before the run begins, both are 0.
        """
        return self._child.progress if self._child else Progress(0, 0)

    def cancel(self) -> None:
        """Ends the protection at all nodes. The snapshot before stays in force. All ranks call it, or `wait` takes longer."""
        self._cancelled = True
        if self._child:
            self._child.cancel()

    def wait(self) -> ProtectReport:
        """Returns once the snapshot is in force at every node. All ranks call it, and have the same result.

        Raises `volley.RunFailed` or `volley.Refused`. The snapshot before then stays in force.
        """
        return read(ProtectReport, self._report())

    def _report(self) -> Any:
        if self._all is None:
            if self._child:
                if self._cancelled:  # a second signal ends a run that still waits for others to come
                    self._child.join(_END_SECONDS)
                    self._child.cancel()
                self._child.join()
            self._all = _gather(self._child and self._child.outcome, self._group)
        outcomes = [x for x in self._all if x]
        reports = [r for x in outcomes for r in x.reports]
        code = max(x.code for x in outcomes)
        if code or not reports:
            errors = [text for x in outcomes for text in x.errors]
            raise failure(code or 1, "\n".join(dict.fromkeys(errors)), self._verb, reports)
        return reports[0]


def _gather(mine: Any, group: Any) -> List[Any]:
    """Returns what every rank has given, by rank."""
    everyone: List[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everyone, mine, group=group)
    return everyone


class Checkpointer:
    """Keeps the checkpoints of a job as snapshots `step-N` below a directory of each node.

    Any `tolerate` of the nodes may be lost, with their processes and directories. A node is the ranks that see the
    same `root`, such as a directory in /dev/shm. `retain` snapshots are kept, all for 0.

    `address` is where others reach the host of rank 0: MASTER_ADDR, unless given. `port` is where a run meets there:
    any, unless given, and the other ports are then those of the flag `--port`.

    `nice`, `cores` and `limit_rate` bound what a protection takes from the training at each node: it lowers its priority,
    uses so many cores, and sends so many bytes a second, such as "100MB". What `load_latest` does has no bound.
    `flags` are others of the command line, such as `["--timeout", "5m"]`.

    All ranks call it together, after `torch.distributed.init_process_group`.
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
        nice: int = 10,
        cores: Optional[int] = None,
        limit_rate: Union[str, int, None] = None,
        flags: Sequence[str] = (),
    ) -> None:
        self.root, self.tolerate, self.retain = Path(root).absolute(), tolerate, retain
        self._flags = list(flags)
        options = {"tolerate": tolerate, "retain": retain, "digest": digest, "nice": nice, "cores": cores, "limit-rate": limit_rate}
        self._protect = [f"--{name}={value}" for name, value in options.items() if value is not None]
        self._group = dist.new_group(backend="gloo")  # its messages do not mix with those of the training
        self._rank = dist.get_rank()
        self._address = address if address else os.environ.get("MASTER_ADDR", "")
        self._port = port
        self._job: Optional[Job] = None
        where, error = "", ""
        try:
            self._binary = binary()
            self.root.mkdir(parents=True, exist_ok=True)
            stat = self.root.stat()
            where = f"{Path('/proc/sys/kernel/random/boot_id').read_text()} {stat.st_dev} {stat.st_ino}"
            if self._rank == 0 and not self._address:
                error = "MASTER_ADDR is not set: give address, where others reach this host"
        except OSError as e:
            error = str(e)
        everyone = self._agree(error, where)
        self._leaders = [everyone.index(w) for w in everyone]  # by rank: the first of its node
        self._nodes = sorted(set(self._leaders))
        if len(self._nodes) <= tolerate:
            raise ValueError(f"to lose {tolerate} nodes takes {tolerate + 1} or more, and the ranks see {len(self._nodes)} directories: each node needs a root of its own")

    @property
    def _leads(self) -> bool:
        return self._rank in self._nodes

    def _agree(self, error: str, value: Any = None) -> List[Any]:
        """Returns the values of all ranks, or raises the same error at all of them if one has any."""
        everyone = _gather((error, value), self._group)
        errors = [f"rank {r}: {e}" for r, (e, _) in enumerate(everyone) if e]
        if errors:
            raise RunFailed("; ".join(errors), 1, "checkpoint")
        return [v for _, v in everyone]

    def _finish(self) -> None:
        """Waits for the protection before, and raises its error unless that has been raised."""
        job, self._job = self._job, None
        if job and not job.waited:
            job.wait()

    def save(self, state: Any, step: int) -> Job:
        """Writes the state of each rank, as torch.save does, and begins to protect the snapshot of this step.

        Returns when all ranks have written. If the protection before still runs, it waits for that first, and raises
        its error unless `Job.wait` has. Steps are 0 or more, and each is saved once.

        Raises `volley.RunFailed` at all ranks if one cannot write, such as for want of space.
        """
        self._finish()
        temporary, final, error = self.root / f".writing-{step}", self.root / f"step-{step}", ""
        try:
            if step < 0:
                raise ValueError(f"step {step}: want 0 or more")
            if final.exists():
                raise FileExistsError(f"{final} is there: a step is saved once. To go on with a job, call load_latest first")
            temporary.mkdir(exist_ok=True)
            with open(temporary / f"rank-{self._rank}.pt", "wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
        except Exception as e:
            error = str(e) or repr(e)
        try:
            self._agree(error)
        except RunFailed:
            if self._leads:
                shutil.rmtree(temporary, ignore_errors=True)
            raise
        error = ""
        if self._leads:
            try:
                for left in temporary.iterdir():  # of an earlier life with more ranks at this node
                    rank = re.fullmatch(r"rank-(\d+)\.pt", left.name)
                    if not rank or int(rank[1]) >= len(self._leaders) or self._leaders[int(rank[1])] != self._rank:
                        left.unlink()
                temporary.rename(final)
            except OSError as e:
                error = str(e)
        self._agree(error)
        self._job = self._start(step, "protect", "--root", "--step", str(step), *self._protect)
        return self._job

    def load_latest(self, map_location: Any = "cpu") -> Optional[Tuple[int, Any]]:
        """Brings back what lost nodes had of the newest snapshot, and returns its step and this rank's state.

        Returns None where no snapshot was ever in force or complete. torch.load reads the state, and runs what a pickle
        says: protect a job only between hosts that you trust.

        Raises `volley.Refused` or `volley.RunFailed` where there are snapshots, and none can be brought back, or the newest
        cannot be read or written now and may not be lost. No snapshot is then moved away.
        """
        self._finish()
        self._clear()
        known = self._run("snapshots")
        if all(s["state"] == "incomplete" and not s.get("holders") for s in known["snapshots"]):  # for certain
            self._set_aside()
            return None
        step = int(self._run("recover", "--latest")["step"])
        directory = self.root / f"step-{step}"
        names = {f.name for f in directory.glob("rank-*.pt")} if self._leads else set()
        owner = {name: rank for rank, has in enumerate(self._agree("", names)) for name in has}
        ranks = len(self._leaders)
        if set(owner) != {f"rank-{r}.pt" for r in range(ranks)}:
            raise ValueError(f"step {step} was saved by {len(owner)} ranks, and this job has {ranks}: start it with {len(owner)}")
        mine: Any = directory / f"rank-{self._rank}.pt"
        for r in range(ranks):  # those that are at another host than before
            at, name = owner[f"rank-{r}.pt"], f"rank-{r}.pt"
            if at == self._leaders[r]:
                continue
            if self._rank == at:
                data = bytearray((directory / name).read_bytes())
                dist.send(torch.tensor([len(data)]), r, group=self._group)
                dist.send(torch.frombuffer(data, dtype=torch.uint8), r, group=self._group)
            if self._rank == r:
                size = torch.zeros(1, dtype=torch.int64)
                dist.recv(size, at, group=self._group)
                content = torch.empty(int(size), dtype=torch.uint8)
                dist.recv(content, at, group=self._group)
                mine = io.BytesIO(content.numpy().tobytes())
        error, state = "", None
        try:
            state = torch.load(mine, map_location=map_location)
        except Exception as e:
            error = f"{directory}: {e}"
        self._agree(error)
        return step, state

    def _clear(self) -> None:
        """Removes what ranks that were killed have begun to write."""
        for begun in self.root.glob(".writing-*") if self._leads else ():
            shutil.rmtree(begun, ignore_errors=True)

    def _set_aside(self) -> None:
        """Moves away what was saved and never protected, so that its steps can be saved again. Nothing is removed."""
        error = ""
        try:
            for d in self.root.glob("step-*") if self._leads else ():
                if re.fullmatch(r"step-\d+", d.name):
                    d.rename(f"{d}.aside-{time.time_ns()}")
        except OSError as e:
            error = str(e)
        self._agree(error)

    def _run(self, verb: str, *flags: str) -> Any:
        """Runs a verb to its end. Runs of a job that was killed may still be ending: it waits for those."""
        begun = time.monotonic()
        while True:
            try:
                return self._start(-1, verb, *flags)._report()
            except RunFailed as e:
                late = self._agree("", time.monotonic() - begun > _BUSY_SECONDS)[0]  # by one clock
                if late or " is busy" not in str(e):
                    raise
            time.sleep(0.2)

    def _start(self, step: int, verb: str, *flags: str) -> Job:
        """Starts a run of all nodes: rank 0 makes its secret, and says where it listens."""
        secret = secrets.token_hex(32) if self._rank == 0 else ""
        child, meet = None, ""
        if self._rank == 0:
            host = f"[{self._address}]" if ":" in self._address else self._address
            child = self._child(verb, flags, f"{host}:{self._port}", secret, "--verbose")
            meet = child.meets.get()
        told = [(meet, secret)]
        dist.broadcast_object_list(told, 0, group=self._group)
        meet, secret = told[0]
        if self._leads and self._rank > 0 and meet:
            child = self._child(verb, flags, meet, secret)
        return Job(step, verb, child, self._group)

    def _child(self, verb: str, flags: Sequence[str], meet: str, secret: str, *more: str) -> _Child:
        place = ["--comm", "grpc", "--rank", str(self._nodes.index(self._rank)), "--size", str(len(self._nodes)), "--meet", meet]
        common = ["--json", "--log-format", "json", *OFTEN, "--secret", "-", *([] if self._port else ["--port", ""]), *more, *self._flags, "--", str(self.root)]
        wrapper = [sys.executable or "python3", "-I", "-S", str(_child.__file__), str(os.getpid()), self._binary]
        return _Child([*wrapper, verb, *flags, *place, *common], secret)
