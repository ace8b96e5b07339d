"""The nodes of a job under torch.distributed: what their ranks agree on, and the runs of Volley beside them."""

from __future__ import annotations

import json
import os
import queue
import re
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Type, Union

import torch
import torch.distributed as dist

from . import _child
from ._run import OFTEN, Progress, Refused, RunFailed, binary, documents, failure, log, said
from .reports import ProtectReport, SnapshotsReport, read

_END_SECONDS = 5.0  # that a run has to end after a signal
_BUSY_SECONDS = 60.0  # how long a recovery waits for runs of a job that was killed
_CANCELLED = 130  # exit code
LOST_SECONDS = 10.0  # how long a process that cannot go on waits for other ranks

Member = Tuple[int, str]  # of a run: the rank that leads its node, and the name of its root below that of the node


class _Outcome(NamedTuple):
    """How a member of a run ended: exit code, errors, and JSON, which one of all members has."""

    code: int
    errors: List[str]
    reports: List[Any]
    stays: bool = False  # its process, for the next run


class _Process:
    """The binary as a process of this node, which runs verbs one after another with those of other nodes.

    A thread starts it and waits for it: Linux ends a child when the thread that started it ends.
    """

    def __init__(self, key: Any, secret: str, place: Sequence[str], nice: int) -> None:
        self._key, self.secret, self.place = key, secret, list(place)  # which runs it is for, and where it meets the others
        self.idle = False  # so that the next run may have it, as all ranks know
        self._job = weakref.ref(dist.group.WORLD)
        self._nice = nice
        self._started: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._live, name="volley", daemon=True).start()
        self._found = self._started.get()

    def _live(self) -> None:
        try:
            command = [sys.executable or "python3", "-I", "-S", str(_child.__file__), str(os.getpid()), str(self._nice), binary(), "serve"]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace")
        except Exception as e:  # such as no memory
            self._started.put(e)
        else:
            self._started.put(process)
            process.wait()

    @property
    def pipes(self) -> subprocess.Popen[str]:
        """The process, or raises why there is none."""
        if isinstance(self._found, Exception):
            raise self._found
        process: subprocess.Popen[str] = self._found
        return process

    @property
    def usable(self) -> bool:
        """Whether it lives, for the process group that there is."""
        return self._job() is dist.group.WORLD and self.pipes.poll() is None

    def taken(self, key: Any) -> bool:
        """Takes it for a run of these nodes, if it waits for one. Threads may ask at the same time."""
        with _taking:
            taken = self.idle and self._key == key and self.usable
            self.idle = self.idle and not taken
            return taken

    def end(self) -> None:
        """Has it end, unless it has."""
        if self in _processes:
            _processes.remove(self)
        if isinstance(self._found, subprocess.Popen) and self._found.stdin:
            try:
                self._found.stdin.close()
            except BrokenPipeError:
                pass


_processes: List[_Process] = []  # of this process that stay
_taking = threading.Lock()


class _Child(threading.Thread):
    """What one member does in a run, by a process that stays, or one of its own.

    It is no daemon, so a process that ends waits for its last protection.
    """

    def __init__(self, process: _Process, arguments: Sequence[str]) -> None:
        super().__init__(name="volley")
        self.process, self._arguments = process, arguments
        self.progress = Progress(0, 0)
        self._cancelled = False
        self.meets: queue.SimpleQueue[str] = queue.SimpleQueue()  # where it listens, if others meet there; "" where it does not
        self.outcome = _Outcome(1, [], [])
        self.start()

    def run(self) -> None:
        try:
            self._run(self.process.pipes)
        except Exception as e:  # all ranks are to hear of it
            self.outcome = _Outcome(1, [f"{socket.gethostname()}: {e}"], [])
        finally:
            self.meets.put("")

    def _run(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps({"args": self._arguments, "secret": self.process.secret}) + "\n")
            process.stdin.flush()
        except BrokenPipeError:  # it has ended, and says why
            pass
        lines: List[str] = []
        for line in process.stdout:
            if '"msg":"listens"' in line:
                self.meets.put(json.loads(line)["advertise"])
            elif '"msg":"progress"' in line:
                list(said([line], self._heard))
            elif line.startswith('{"exit_code":'):
                reply = json.loads(line)
                code = reply["exit_code"]
                self.outcome = _Outcome(code, list(said(lines)), documents(reply["printed"]), not self._cancelled and code == 0)
                if code == 0:
                    self.progress = Progress(self.progress.total, self.progress.total)
                return
            else:
                lines.append(line)
        code = process.wait()
        lines.append(f"{socket.gethostname()}: volley was ended by {f'signal {-code}' if code < 0 else f'an error, with exit code {code}'}")
        self.outcome = _Outcome(1, list(said(lines)), [])

    def _heard(self, at: Progress) -> None:
        self.progress = at

    def cancel(self) -> None:
        self._cancelled = True
        if self.is_alive():
            self.process.pipes.terminate()


class Job:
    """The protection of a snapshot, or another run of Volley, which goes on beside the job."""

    def __init__(self, nodes: Nodes, step: int, verb: str, retain: int = 0) -> None:
        self.step, self.verb, self._nodes, self._retain = step, verb, nodes, retain
        self._children: List[_Child] = []
        self.writing: Optional[Thread] = None  # what comes before the children
        self._all: Optional[List[_Outcome]] = None  # at the end
        self._error: Optional[BaseException] = None  # it has come to no end
        self._cancelled = False

    @property
    def waited(self) -> bool:
        """Whether `wait` has returned or raised."""
        return self._all is not None

    @property
    def done(self) -> bool:
        """Whether this node's part has ended, well or not. At ranks that are not the first of their node it is True."""
        return not (self.writing and self.writing.is_alive()) and not any(c.is_alive() for c in self._children)

    @property
    def progress(self) -> Progress:
        """How far this node's part is: `done` and `total` bytes, and their `fraction` from 0 to 1.

        It is not older than a second. At ranks that are not the first of their node, and before the run begins, both are 0.
        """
        all_ = [c.progress for c in self._children]
        return Progress(sum(p.done for p in all_), sum(p.total for p in all_))

    def cancel(self) -> None:
        """Ends the protection at all nodes. The snapshot before stays in force. All ranks call it, or `wait` takes longer."""
        self._cancelled = True
        for child in self._children:
            child.cancel()

    def wait(self) -> ProtectReport:
        """Returns once the snapshot is in force at every node. All ranks call it, and have the same result.

        Raises `volley.RunFailed`, `volley.Refused` or, after `cancel`, `volley.Cancelled`. The snapshot before then stays
        in force.
        """
        fresh = not self.waited
        report = read(ProtectReport, self.report())
        if fresh:
            self._nodes.retire(self._retain)
        return report

    def begin(self, child: _Child) -> None:
        """Has one more member, of this process."""
        self._children.append(child)
        if self._cancelled:
            child.cancel()

    def report(self) -> Any:
        """Waits for the end, and returns the report, that of the lowest rank which has one. Raises the error of the run."""
        if self._all is None:
            try:
                self._all = self._end()
            except BaseException as e:
                self._all, self._error = [], e
        if self._error:
            raise self._error
        reports = [r for x in self._all for r in x.reports]
        code = max(x.code for x in self._all)
        if code or not reports:
            errors = [text for x in self._all for text in x.errors]
            raise failure(code or 1, "\n".join(dict.fromkeys(errors)), self.verb, reports)
        return reports[0]

    def _end(self) -> List[_Outcome]:
        """Waits for the end, and returns how all members have ended. Their processes stay where all have ended well."""
        if self.writing:
            self.writing.result()
        for child in self._children:
            if self._cancelled:  # a second signal ends a run that still waits for others to come
                child.join(_END_SECONDS)
                child.cancel()
            child.join()
        mine = [c.outcome._replace(code=_CANCELLED) if c.outcome.code and self._cancelled else c.outcome for c in self._children]
        all_ = [x for of in self._nodes.gather(mine) for x in of]
        for process in (c.process for c in self._children):
            process.idle = process in _processes and all(x.stays for x in all_)
            if not process.idle:
                process.end()
        return all_


class Thread(threading.Thread):
    """A function beside the program. A process that ends waits for it."""

    def __init__(self, function: Callable[[], None]) -> None:
        super().__init__(name="volley")
        self._function = function
        self._error: Optional[BaseException] = None
        self.start()

    def run(self) -> None:
        try:
            self._function()
        except BaseException as e:
            self._error = e

    def result(self) -> None:
        """Waits until it is done, and raises its error."""
        self.join()
        if self._error:
            raise self._error


def end_soon(why: str) -> None:
    """Ends this process when its own children have ended. It waits for other ranks no longer than some seconds.

    They may be waiting for this one: a call of gloo ends early only at ranks that see a process end. So a rank that is
    lost would hold all others up to the timeout of the process group.
    """

    def end() -> None:
        time.sleep(LOST_SECONDS)
        for t in threading.enumerate():
            if isinstance(t, _Child):
                t.join()
        log.error("%s: this process ends without waiting for other ranks", why)
        for stream in (sys.stdout, sys.stderr):
            if stream:
                stream.flush()
        os._exit(1)

    threading.Thread(target=end, name="volley", daemon=True).start()


def _watch() -> None:
    """Waits for the end of the program. If that was an error, the process does not wait for threads that talk to ranks."""
    threading.main_thread().join()
    error = getattr(sys, "last_value", None)
    if error is not None:
        end_soon(f"the program has failed: {type(error).__name__}")


class Brought(NamedTuple):
    """A snapshot that is there again, and the roots that have it."""

    step: int
    members: List[Member]


_watching = threading.Thread(target=_watch, name="volley", daemon=True)


class Group:
    """What the ranks of a job say to each other. All call each function together.

    The process group is their own, so that its messages do not mix with those of the training.
    """

    def __init__(self, group: Any = None) -> None:
        self.group = group or dist.new_group(backend="gloo")

    def gather(self, mine: Any) -> List[Any]:
        """Returns what every rank has given, by rank."""
        everyone: List[Any] = [None] * dist.get_world_size(self.group)
        dist.all_gather_object(everyone, mine, group=self.group)
        return everyone

    def agree(self, error: str, value: Any = None, kind: Type[Exception] = RunFailed) -> List[Any]:
        """Returns the values of all ranks, or raises the same error at all of them if one has any."""
        everyone = self.gather((error, value))
        errors = [e for e, _ in everyone]
        text = errors[0] if len(set(errors)) == 1 else "; ".join(f"rank {r}: {e}" for r, e in enumerate(errors) if e)
        if text:
            raise kind(text, 1, "checkpoint") if issubclass(kind, RunFailed) else kind(text)
        return [v for _, v in everyone]

    def alike(self, said: Dict[str, Any], wrong: str) -> None:
        """Raises ValueError where a rank says what cannot be, or something else than rank 0."""
        everyone = self.agree(wrong, said, ValueError)
        for rank, other in enumerate(everyone):
            for name, mine in everyone[0].items():
                if mine != other[name]:
                    raise ValueError(f"rank 0 has {name}={mine!r}, and rank {rank} {name}={other[name]!r}: give all ranks the same")


_ours: Any = (lambda: None, None)  # the job's process group, weakly, and ours of the same ranks


def our_group() -> Any:
    """Returns a process group of all ranks by gloo, the same until the job makes another one of its own.

    It is for the main thread: what goes on beside it has groups of its own.
    """
    global _ours
    of = dist.group.WORLD
    if of is None or _ours[0]() is not of:
        _ours = (weakref.ref(of) if of is not None else lambda: None, dist.new_group(backend="gloo"))
    return _ours[1]


class Nodes(Group):
    """The nodes of a job: the ranks that see the same `root` are one, and the first of them leads it.

    All ranks call each function together, but for `begin`.
    """

    def __init__(self, root: Path, address: Optional[str], port: int, flags: Sequence[str]) -> None:
        super().__init__()
        self.root = root
        self._port, self._flags = port, list(flags)
        self.rank = dist.get_rank()
        self._address = address if address else os.environ.get("MASTER_ADDR", "")
        place, error = "", ""
        try:
            binary()
            root.mkdir(parents=True, exist_ok=True)
            stat = root.stat()
            place = f"{Path('/proc/sys/kernel/random/boot_id').read_text()} {stat.st_dev} {stat.st_ino}"
            if not self._address:
                error = "MASTER_ADDR is not set: give address, where others reach the host of rank 0"
        except OSError as e:
            error = str(e)
        places = self.agree(error, place)  # by rank
        if not _watching.ident:
            _watching.start()
        self.leaders = [places.index(p) for p in places]  # by rank: the first of its node
        self.nodes = sorted(set(self.leaders))
        self.beside: Optional[Thread] = None  # that talks to the other ranks

    def launch(self, job: Job, flags: Sequence[str], members: Sequence[Member], nice: int = 0) -> None:
        """Starts a run, by the processes of the run before, unless that has failed or one has ended or does something.

        The first one makes the secret of the run, and says where it listens. `nice` lowers their priority.
        """
        for old in [p for p in _processes if p.idle and not p.usable]:
            old.end()
        stay = [(rank, "") for rank in self.nodes] == list(members)
        key = (self.root, self.nodes, nice, self._port, self._address, self._flags)  # ranks are in the order of nodes in a root
        kept, process = self._kept(key) if stay else (False, None)
        told = [("", "")]
        for i, (rank, name) in enumerate(members):
            if i == 1 and not kept:
                dist.broadcast_object_list(told, members[0][0], group=self.group)
            meet, secret = told[0]
            if rank != self.rank or i and not kept and not meet:
                continue
            if i == 0 and not kept:
                host = self._own() if rank else self._address
                meet, secret = f"[{host}]:{self._port}" if ":" in host else f"{host}:{self._port}", secrets.token_hex(32)
            if process is None or not stay:
                process = _Process(key, secret, ["--comm", "tcp", "--rank", str(i), "--size", str(len(members)), "--meet", meet], nice)
                if stay:
                    _processes.append(process)
            common = ["--json", "--log-format", "json", *OFTEN, *([] if self._port else ["--port", ""]), *([] if i else ["--verbose"])]
            child = _Child(process, [job.verb, *flags, *process.place, *common, *self._flags, "--", str(self.root / name)])
            job.begin(child)
            if i == 0 and not kept:
                told = [(child.meets.get(), secret)]

    def _kept(self, key: Any) -> Tuple[bool, Optional[_Process]]:
        """Returns whether those of all nodes wait for a run together, and this one's."""
        mine = next((p for p in _processes if p.taken(key)), None)
        everyone = self.gather(mine and mine.secret)
        if len({everyone[leader] for leader in self.nodes}) == 1 and everyone[self.nodes[0]]:
            return True, mine
        if mine:
            mine.end()
        return False, None

    def _own(self) -> str:
        """Returns where others reach this host: the address from which it reaches rank 0. Nothing is sent."""
        family, kind, protocol, _, at = socket.getaddrinfo(self._address, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as s:
            s.connect(at)
            return str(s.getsockname()[0])

    def settle(self) -> None:
        """Waits for what goes on beside this thread: one thread at a time talks to the other ranks."""
        if self.beside:
            self.beside.join()

    @property
    def leads(self) -> bool:
        return self.rank in self.nodes

    def move(self, moves: Sequence[Tuple[int, int]], give: Callable[[int], torch.Tensor], take: Callable[[int, torch.Tensor], None]) -> None:
        """Sends bytes between ranks: move i is from one rank to another one. One move at a time takes memory.

        All ranks have the same moves, so that each pair comes to its moves in the same order. Raises what one rank has
        raised at all of them, after the last move.
        """
        size, failed = torch.zeros(1, dtype=torch.int64), ""
        for i, (source, target) in enumerate(moves):
            if source == self.rank:
                data = torch.empty(0, dtype=torch.uint8)
                try:
                    data = give(i)
                    size[0] = data.numel()
                except Exception as e:
                    failed = failed or str(e) or repr(e)
                    size[0] = -1
                dist.send(size, target, group=self.group)
                if data.numel():
                    dist.send(data, target, group=self.group)
            if target == self.rank:
                dist.recv(size, source, group=self.group)
                if size[0] < 0:
                    continue
                data = torch.empty(int(size), dtype=torch.uint8)
                if data.numel():
                    dist.recv(data, source, group=self.group)
                try:
                    take(i, data)
                except Exception as e:
                    failed = failed or str(e) or repr(e)
        self.agree(failed)

    # How a snapshot is written.

    def writing(self, step: int) -> Path:
        """Returns where a snapshot is until all ranks have written. Volley ignores this name."""
        return self.root / f".writing-{step}"

    def begin(self, step: int) -> None:
        """Makes the directory in which a snapshot is written, without what an earlier life of the job has left.

        It says nothing to other ranks. None of them writes before all have called it.
        """
        if not isinstance(step, int) or step < 0:
            raise ValueError(f"step {step!r}: want a whole number, 0 or more")
        final = self.root / f"step-{step}"
        if final.exists():
            raise FileExistsError(f"{final} is there: a step is saved once. To go on with a job, call load_latest first")
        self.clear()
        self.writing(step).mkdir(parents=True, exist_ok=True)

    def clear(self) -> None:
        """Removes what ranks that were killed have begun to write or to remove."""
        for name in (".writing-*", ".removing-*"):
            for begun in self.root.glob(name) if self.leads else ():
                shutil.rmtree(begun, ignore_errors=True)

    def commit(self, step: int, error: str) -> None:
        """Gives a snapshot its name when all ranks have written, each without an error."""
        writing = self.writing(step)
        try:
            self.agree(error)
            if self.leads:
                error = tried(lambda: _sync(writing))
            self.agree(error)
        except RunFailed:
            if self.leads:
                shutil.rmtree(writing, ignore_errors=True)
            raise
        if self.leads:
            error = tried(lambda: writing.rename(self.root / f"step-{step}"))
        self.agree(error)

    def protect(self, step: int, options: Options, job: Optional[Job] = None, waits: bool = False) -> Job:
        """Starts to protect a snapshot. The job may wait for it."""
        job = job or Job(self, step, "protect", options.retain)
        return self.start(job, ["--step", str(step), *options.arguments()], nice=options.lowers(waits))

    def retire(self, retain: int) -> None:
        """Removes snapshots of other nodes that are not retained, and roots of nodes that were missing.

        A run of `protect` leaves what is unclear to it, as it cannot tell whether nodes were left out.
        """
        mine = self.leads and (len(_steps(self.root)) > retain or any(self.root.glob(".spare-*")))
        if not retain or not any(self.gather(mine)):
            return
        try:
            known = read(SnapshotsReport, self.run("snapshots"))
        except RunFailed as e:
            log.warning("old snapshots stay: %s", e)
            return
        kept = [s.step for s in known.snapshots if s.state == "in force" and s.nodes == len(self.nodes)][:retain]
        if len(kept) < retain or not self.leads:
            return
        others = [s.step for s in known.snapshots if s.state == "unclear" and s.nodes and s.step < kept[-1]]
        gone = [self.root / f"step-{step}" for step in others] + [d for d in self.root.glob(".spare-*") if all(step < kept[-1] for step in _steps(d))]
        for d in gone:
            removing = self.root / f".removing-{d.name}"
            try:
                if d.exists():
                    d.rename(removing)  # or a part of it would look like a loss
                    shutil.rmtree(removing)
            except OSError as e:
                log.warning("%s stays: %s", d, e)

    # Runs of all nodes.

    def start(self, job: Job, flags: Sequence[str] = (), members: Sequence[Member] = (), nice: int = 0) -> Job:
        """Starts a run of these members, else of all nodes."""
        self.launch(job, flags, members or [(leader, "") for leader in self.nodes], nice)
        return job

    def run(self, verb: str, flags: Sequence[str] = (), members: Sequence[Member] = ()) -> Any:
        """Runs a verb to its end. Runs of a job that was killed may still be ending: it waits for those."""
        begun = time.monotonic()
        while True:
            try:
                return self.start(Job(self, -1, verb), flags, members).report()
            except RunFailed as e:
                late = self.agree("", time.monotonic() - begun > _BUSY_SECONDS)[0]  # by one clock
                if late or " is busy" not in str(e):
                    raise
            time.sleep(0.2)

    # How a snapshot comes back.

    def bring_back(self, step: Optional[int] = None) -> Optional[Brought]:
        """Brings back what lost nodes had of a snapshot, else of the newest. None: none was ever protected or complete.

        If it is of more nodes than there are, roots `.spare-N` below those of others take the places of those that are
        missing. If it is of fewer, nodes are left out that have nothing of it.

        Raises `volley.Refused` or `volley.RunFailed` where there are snapshots, and it cannot be brought back. Nothing is
        moved away then.
        """
        self.clear()
        roots = self._roots()
        known = read(SnapshotsReport, self.run("snapshots", (), sorted(m for m, steps in roots.items() if steps or m[1] == "")))
        listed = [s for s in known.snapshots if s.state != "incomplete" or s.nodes]  # others were never protected, for certain
        if step is not None:
            listed = [s for s in listed if s.step == step]
            if not listed:
                raise Refused(f"step-{step} is not below {self.root} of any node, or was never protected", 2, "recover")
        elif not listed:
            self._set_aside(-1)
            return None
        newest = listed[0]
        if not newest.nodes:  # it was never protected: a node that was lost with it is missed in the one before
            before = next((s for s in listed if s.nodes), newest)
            if sum(newest.step in steps for steps in roots.values()) < (before.nodes or 0):
                newest = before
        members = _members(roots, newest.step, newest.nodes or len(self.nodes))
        got = int(self.run("recover", ["--step", "latest" if step is None else str(step)], members)["step"])
        if step is None:
            self._set_aside(got)
        return Brought(got, members)

    def _roots(self) -> Dict[Member, List[int]]:
        """Returns the roots of all nodes, those first that have the place of a node, with the steps that they have."""
        mine: List[Tuple[str, List[int]]] = []

        def look() -> None:
            spares = sorted(d.name for d in self.root.glob(".spare-*"))
            mine.extend((name, _steps(self.root / name)) for name in ["", *spares])

        everyone = self.agree(tried(look) if self.leads else "", mine)
        found = [((rank, name), steps) for rank, of in enumerate(everyone) for name, steps in of]
        return dict(sorted(found, key=lambda x: bool(x[0][1])))

    def _set_aside(self, step: int) -> None:
        """Moves away what is newer than a step, so that its steps can be saved again. Nothing is removed."""

        def rename() -> None:
            for s in _steps(self.root):
                if s > step:
                    d = self.root / f"step-{s}"
                    d.rename(f"{d}.aside-{time.time_ns()}")

        self.agree(tried(rename) if self.leads else "")

    def path(self, member: Member, step: int) -> Path:
        """Returns where a rank of the member's node sees its snapshot."""
        return self.root / member[1] / f"step-{step}"

    def files(self, brought: Brought) -> Dict[str, Member]:
        """Returns the member of a snapshot that has a file, by the name of the file in it."""
        mine: List[Tuple[str, Member]] = []

        def look() -> None:
            for rank, name in brought.members:
                if rank == self.rank:
                    directory = self.path((rank, name), brought.step)
                    mine.extend((str(f.relative_to(directory)), (rank, name)) for f in directory.rglob("*") if f.is_file())

        everyone = self.agree(tried(look), mine)
        return {name: member for of in everyone for name, member in of if not name.startswith(".volley/")}


def _members(roots: Dict[Member, List[int]], step: int, size: int) -> List[Member]:
    """Chooses the roots that stand for the nodes of a group of that size.

    Those that have the snapshot come first, then empty ones, then new ones below the roots of the nodes in turns. The
    list begins with the lowest rank: others know the address of rank 0.
    """
    members = [m for m, steps in roots.items() if step in steps]
    if len(members) > size:
        places = ", ".join(f"rank {rank} {name}".strip() for rank, name in members)
        raise Refused(f"step-{step} is of {size} nodes, and the nodes of {len(members)} have it ({places}): move away what is not of this job", 2, "recover")
    members += [m for m in roots if m not in members][: size - len(members)]
    leaders = [rank for rank, name in roots if name == ""]
    for i in range(size):
        if len(members) == size:
            break
        new = (leaders[i % len(leaders)], f".spare-{i + 1}")
        if new not in roots:
            members.append(new)
    return sorted(members)


class Options(NamedTuple):
    """What a job says of its protections, alike at all ranks."""

    tolerate: int
    retain: int = 2
    digest: Optional[str] = None
    nice: Optional[int] = None
    limit_rate: Union[str, int, None] = None
    port: int = 0  # those of all runs follow
    flags: Sequence[str] = ()

    def lowers(self, waits: bool) -> int:
        """Returns by how much `protect` lowers its priority. Where the job waits for it, no training runs beside it."""
        return self.nice if self.nice is not None else 0 if waits else 10

    def arguments(self) -> List[str]:
        """Returns the flags of `protect`."""
        of = self._asdict()
        del of["nice"], of["port"], of["flags"]
        if not any(flag.startswith("--key") for flag in self.flags):  # with which a digest has to be sha256 or blake3
            of["digest"] = self.digest or "xxh3"
        return [f"--{name.replace('_', '-')}={value}" for name, value in of.items() if value is not None]

    def agreed(self, make: Callable[[], Nodes], **said: Any) -> Nodes:
        """Makes the nodes of these options. Raises ValueError at all ranks where one has other options, or some that cannot be.

        `said` is what else all ranks say alike.
        """
        Group(our_group()).alike({**self._asdict(), "flags": tuple(self.flags), **said}, self._wrong())
        nodes = make()
        count = len(nodes.nodes)
        if count <= self.tolerate:
            raise ValueError(f"to lose {self.tolerate} nodes takes {self.tolerate + 1} or more, and the ranks see {count} {'directory' if count == 1 else 'directories'}: each node needs a root of its own")
        return nodes

    def _wrong(self) -> str:
        """Says what cannot be, or nothing."""
        for name, value, least in ("tolerate", self.tolerate, 1), ("retain", self.retain, 0), ("nice", self.nice, 0), ("port", self.port, 0):
            if name == "nice" and value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                return f"{name}={value!r}: want a whole number, {least} or more"
        return ""


def tried(function: Callable[[], Any]) -> str:
    """Calls a function, and returns the text of its error, for all ranks to agree on."""
    try:
        function()
    except (OSError, ValueError) as e:
        return str(e)
    return ""


def _steps(root: Path) -> List[int]:
    """Returns the steps of the snapshots in a root."""
    found = [re.fullmatch(r"step-(0|[1-9]\d*)", d.name) for d in root.iterdir()] if root.exists() else []
    return sorted(int(m[1]) for m in found if m)


def _sync(directory: Path) -> None:
    """Has the disk write what is in a directory: what is in force has to outlast a power failure."""
    for at, _, names in os.walk(directory):
        for path in (at, *(os.path.join(at, name) for name in names)):
            if not os.path.islink(path):
                handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
