"""The nodes of a job under torch.distributed: what their ranks agree on, and the runs of Volley beside them."""

from __future__ import annotations

import json
import os
import queue
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
from ._run import OFTEN, NothingProtected, Progress, RunFailed, binary, documents, failure, log, said
from .reports import ProtectReport, read

_END_SECONDS = 5.0  # that a run has to end after a signal
_BUSY_SECONDS = 60.0  # how long a recovery waits for runs of a job that was killed
_CANCELLED = 130  # exit code
LOST_SECONDS = 10.0  # how long a process that cannot go on waits for other ranks

Member = Tuple[int, str]  # who has a part of a snapshot: the rank that leads a node, and the name of a spare below its root, or ""


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
            self._found.terminate()  # a child that this process has forked, such as a DataLoader's, may keep its standard input open
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
                self.outcome = _Outcome(code, list(said(lines)), documents(reply["printed"]), code == 0)
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
        if self.is_alive():
            self.process.pipes.terminate()


class Job:
    """The protection of a snapshot, or another run of Volley, which goes on beside the job."""

    def __init__(self, nodes: Nodes, step: int, verb: str) -> None:
        self.step, self.verb, self._nodes = step, verb, nodes
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
        return read(ProtectReport, self.report())

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
        mine = [c.outcome for c in self._children]
        if self._cancelled:  # a process that had ended the run may get the signal, too
            mine = [o._replace(code=o.code and _CANCELLED, stays=False) for o in mine]
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

    def launch(self, job: Job, flags: Sequence[str], nice: int = 0) -> None:
        """Starts a run of all nodes, by the processes of the run before, unless that has failed or one has ended or does something.

        The first one makes the secret of the run, and says where it listens. `nice` lowers their priority.
        """
        for old in [p for p in _processes if p.idle and not p.usable]:
            old.end()
        key = (self.root, self.nodes, nice, self._port, self._address, self._flags)
        kept, process = self._kept(key)
        told = [("", "")]
        for i, rank in enumerate(self.nodes):
            if i == 1 and not kept:
                dist.broadcast_object_list(told, self.nodes[0], group=self.group)
            meet, secret = told[0]
            if rank != self.rank or i and not kept and not meet:
                continue
            if i == 0 and not kept:
                host = self._own() if rank else self._address
                meet, secret = f"[{host}]:{self._port}" if ":" in host else f"{host}:{self._port}", secrets.token_hex(32)
            if process is None:
                process = _Process(key, secret, ["--comm", "tcp", "--rank", str(i), "--size", str(len(self.nodes)), "--meet", meet], nice)
                _processes.append(process)
            common = ["--json", "--log-format", "json", *OFTEN, *([] if self._port else ["--port", ""]), *([] if i else ["--verbose"])]
            child = _Child(process, [job.verb, *flags, *process.place, *common, *self._flags, "--", str(self.root)])
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
        """Returns where a snapshot is until all ranks have written. Volley removes what is never completed."""
        return self.root / f"step-{step}.draft"

    def begin(self, step: int) -> None:
        """Makes the directory in which a snapshot is written, without what an earlier life of the job has left.

        It says nothing to other ranks. None of them writes before all have called it.
        """
        if not isinstance(step, int) or step < 0:
            raise ValueError(f"step {step!r}: want a whole number, 0 or more")
        final = self.root / f"step-{step}"
        if final.exists():
            raise FileExistsError(f"{final} is there: a step is saved once. To go on with a job, call load_latest first")
        if self.leads:
            for begun in self.root.glob("step-*.draft"):
                shutil.rmtree(begun, ignore_errors=True)
            self.writing(step).mkdir(parents=True, exist_ok=True)

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
        job = job or Job(self, step, "protect")
        return self.start(job, ["--step", str(step), *options.arguments()], nice=options.lowers(waits))

    # Runs of all nodes.

    def start(self, job: Job, flags: Sequence[str] = (), nice: int = 0) -> Job:
        """Starts a run of all nodes."""
        self.launch(job, flags, nice)
        return job

    def run(self, verb: str, flags: Sequence[str] = ()) -> Any:
        """Runs a verb to its end. Runs of a job that was killed may still be ending: it waits for those."""
        begun = time.monotonic()
        while True:
            try:
                return self.start(Job(self, -1, verb), flags).report()
            except RunFailed as e:
                late = self.agree("", time.monotonic() - begun > _BUSY_SECONDS)[0]  # by one clock
                if late or " is busy" not in str(e):
                    raise
            time.sleep(0.2)

    # How a snapshot comes back.

    def bring_back(self, step: Optional[int] = None) -> Optional[int]:
        """Brings back what lost nodes had of a snapshot, else of the newest, and returns its step. None: there is none yet.

        If it is of more nodes than there are, `.spare-N` below the roots of others have what those had that are missing.

        Raises `volley.Refused` or `volley.RunFailed` where there are snapshots, and it cannot be brought back. Nothing is
        moved away then.
        """
        try:
            return int(self.run("recover", ["--step", "latest" if step is None else str(step)])["step"])
        except NothingProtected:
            if step is not None:
                raise
            return None

    def path(self, member: Member, step: int) -> Path:
        """Returns where a rank of the member's node sees its snapshot."""
        return self.root / member[1] / f"step-{step}"

    def files(self, step: int) -> Dict[str, Member]:
        """Returns who has a file of a snapshot, by the name of the file in it."""
        mine: List[Tuple[str, Member]] = []

        def look() -> None:
            for name in ["", *(d.name for d in self.root.glob(".spare-*"))]:
                directory = self.path((self.rank, name), step)
                mine.extend((str(f.relative_to(directory)), (self.rank, name)) for f in directory.rglob("*") if f.is_file())

        everyone = self.agree(tried(look) if self.leads else "", mine)
        return {name: member for of in everyone for name, member in of if not name.startswith(".volley/")}


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
