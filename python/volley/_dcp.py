"""Storage of torch.distributed.checkpoint (DCP) on directories that each node has for itself."""

from __future__ import annotations

import copyreg
import functools
import io
import math
import os
import pickle
import re
import struct
import sys
import threading
import traceback
import zipfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist

try:
    from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
    from torch.distributed.checkpoint.metadata import Metadata
    from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner
    from torch.futures import Future
    from torch.utils._pytree import tree_map
except ImportError as e:
    raise ImportError(f"PyTorch {torch.__version__} has no StorageWriter of files to build on: it takes 2.6 or later ({e})") from None

from ._nodes import LOST_SECONDS, Member, Nodes, Options, Thread, end_soon, tried
from ._run import Error, Refused, RunFailed, log
from .reports import ProtectReport

_METADATA = ".metadata"

_known: Dict[Tuple[Any, ...], Tuple[Any, Nodes]] = {}


def _nodes(root: Path, address: Optional[str], port: int, flags: Sequence[str]) -> Nodes:
    """Returns the nodes of this job: those of the call before, as a process group is made once and stays."""
    key, world = (root, address, port, tuple(flags)), dist.group.WORLD
    if key not in _known or _known[key][0] is not world:
        _known[key] = world, Nodes(root, address, port, flags)
    return _known[key][1]


# An error of a plugin travels to other ranks with lines of its traceback. From Python 3.13 on they have code, which no
# pickle takes: DCP then says so in place of the error, and what one rank alone has met holds all the others.
copyreg.pickle(traceback.FrameSummary, lambda line: (traceback.FrameSummary, (line.filename, line.lineno, line.name)))


def _logged(method: Any) -> Any:
    """Has the errors of a method in the log, whatever DCP makes of them."""

    @functools.wraps(method)
    def logged(self: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return method(self, *arguments, **named)
        except Exception as e:
            log.error("step-%s, %s: %s", self.step, method.__name__, e)
            raise

    return logged


def _step_of(checkpoint_id: Any) -> int:
    """Returns the step by the number at the end of the name by which DCP knows a checkpoint, as frameworks make it."""
    found = re.search(r"(?<!^-)(\d+)(\.[A-Za-z]+)?$", str(checkpoint_id))
    if not found:
        raise ValueError(f"checkpoint_id={checkpoint_id!r}: want the number of the step, or a name that ends with it, such as step-100")
    return int(found[1])


class _Beside:
    """A save by async_save, in a thread of DCP, which would talk to other ranks at the same time as what comes next."""

    def __init__(self) -> None:
        self._thread, self._begun = threading.current_thread(), threading.Event()

    def begins(self) -> bool:
        """Whether this is where it begins, in its thread."""
        if self._begun.is_set() or self._thread is threading.current_thread():
            return False
        self._thread = threading.current_thread()
        self._begun.set()
        return True

    def end(self) -> None:
        """Waits until it is over. It may have failed to begin."""
        if self._begun.wait(LOST_SECONDS):
            self._thread.join()


_beside: Optional[_Beside] = None  # the last one of this process


def _alone(nodes: Nodes) -> None:
    """Waits for the end of what talks to other ranks beside this thread."""
    if _beside:
        _beside.end()
    nodes.settle()


class Writer(FileSystemWriter):  # type: ignore[misc]
    """Writes checkpoints as snapshots `step-N` below a directory of each node, and protects them.

        writer = volley.torch.Writer("/dev/shm/ckpt", tolerate=2)      # once
        dcp.save(state, checkpoint_id=step, storage_writer=writer)

    `checkpoint_id` is the step, or a name that ends with it, such as "checkpoints/step-100". Each is saved once. Each rank
    writes its files at its own node, and `.metadata` lies at every node. `dcp.save` returns, and the future of
    `dcp.async_save` is done, once the snapshot is in force: any `tolerate` of the nodes may then be lost. If one rank cannot
    write or protect, it fails at all ranks, and the snapshot before stays in force. A save waits for the one before.

    The arguments are those of `Checkpointer`, and those of DCP's FileSystemWriter, such as `thread_count`. The job waits
    for `dcp.save`, so `nice` is 0 there, unless given; beside the training, by async_save, it is 10. All ranks make it
    together, in the main thread, with the same arguments; only `root` may differ. Raises ValueError at all ranks where
    one has other arguments, or some that cannot be. All ranks of the job take part in the save: `process_group` is left
    out or has them all, and async_save works in a thread, as it does unless told otherwise.
    """

    def __init__(self, root: Union[str, os.PathLike[str]], tolerate: int, retain: int = 2, *, address: Optional[str] = None, **more: Any) -> None:
        self._options = o = Options(tolerate, retain, **{name: more.pop(name) for name in Options._fields if name in more})
        self._nodes = o.agreed(lambda: _nodes(Path(root).absolute(), address, o.port, o.flags))
        super().__init__(self._nodes.root, sync_files=False, **more)  # the first rank of a node syncs them all
        self.step: Optional[int] = None
        self._named = self._coordinates = self._waits = False
        self._report: Optional[ProtectReport] = None

    @property
    def report(self) -> Optional[ProtectReport]:
        """What the last save has protected, at every rank; None before, and after an error."""
        self._nodes.settle()
        return self._report

    @_logged
    def reset(self, checkpoint_id: Any = None) -> None:
        """Begins a step at all ranks, after the one before. DCP calls it first, and again in the thread of async_save."""
        if _beside and _beside.begins():
            return
        _alone(self._nodes)
        self.step, self._report, error = None, None, tried(lambda: _step_of(checkpoint_id))
        self._nodes.alike({"checkpoint_id": error or _step_of(checkpoint_id)}, error)
        self.step = step = _step_of(checkpoint_id)
        self._nodes.agree(tried(lambda: self._nodes.begin(step)))
        super().reset(self._nodes.writing(step))
        self._named = True

    def stage(self, state_dict: Any) -> Any:
        """Returns the copy of the state that async_save writes. DCP copies what is on a GPU, and here the rest is copied, too."""
        global _beside
        self._check()
        if not self.cache_staged_state_dict:
            state_dict = tree_map(lambda t: t.detach().clone() if isinstance(t, torch.Tensor) and t.device.type == "cpu" else t, state_dict)
        staged = super().stage(state_dict)
        _beside = _Beside()
        return staged

    def _check(self) -> None:
        if not self._named:
            raise ValueError("no checkpoint_id: give dcp.save the step, as checkpoint_id=step")

    @_logged
    def set_up_storage_writer(self, is_coordinator: bool, *arguments: Any, **named: Any) -> None:
        self._check()
        self._named = False
        if not named.get("use_collectives", True):
            raise ValueError("use_collectives=False: all ranks save together")
        self._coordinates = is_coordinator
        super().set_up_storage_writer(is_coordinator, *arguments, **named)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    @_logged
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[Any]:
        self._waits = threading.current_thread() is threading.main_thread()  # async_save works in another one
        error, written = "", Future()
        try:
            written = super().write_data(plan, planner)
            written.wait()
        except Exception as e:
            error = str(e) or repr(e)
        self._coordinator = self._nodes.agree(error, self._coordinates).index(True)
        if not self._coordinates:  # DCP calls finish at the coordinator alone
            self._nodes.beside = Thread(self._commit_beside)
        return written

    @_logged
    def finish(self, metadata: Metadata, results: Any) -> None:
        error, data = "", b""
        try:
            super().finish(metadata, results)
            data = (Path(self.path) / _METADATA).read_bytes()
        except Exception as e:
            error = str(e) or repr(e)
        self._commit(error, data)

    def _commit_beside(self) -> None:
        """Does what the coordinator does in finish, while DCP waits for it."""
        try:
            self._commit("", b"")
        except Error:  # that the coordinator has, too
            raise
        except Exception as e:
            end_soon(f"step-{self.step}: a rank is lost, or cannot be reached: {e}")
            raise

    def _commit(self, error: str, metadata: bytes) -> None:
        """Puts the metadata at all nodes, and protects the snapshot. All ranks call it."""
        told = [(error, metadata)]
        dist.broadcast_object_list(told, self._coordinator, group=self._nodes.group)
        error, metadata = told[0]
        if self._nodes.leads and not error:
            error = tried(lambda: (Path(self.path) / _METADATA).write_bytes(metadata))
        assert self.step is not None
        self._nodes.commit(self.step, error)
        self._report = self._nodes.protect(self.step, self._options, waits=self._waits).wait()


class Reader(FileSystemReader):  # type: ignore[misc]
    """Reads a checkpoint that `Writer` has written, whatever the number of ranks and nodes is now.

        reader = volley.torch.Reader("/dev/shm/ckpt")        # brings back what lost nodes had
        if reader.step is not None:
            dcp.load(state, storage_reader=reader)

    `step` is the newest snapshot, or the one that was asked for, or None where none was ever protected. A rank reads at its
    own node what lies there. Other nodes send it the parts of tensors that it needs, and no more: a rank that sends
    takes the memory of one tensor of a file at a time.

    All ranks make it together, and all take part in `dcp.load`. Where there are fewer nodes than have saved it, a node
    stands for those that are missing, and what they had takes room below its root: in `.spare-N`, until `retain`
    newer snapshots are in force. `address`, `port` and `flags` are those of `Checkpointer`.

    `.metadata` is a pickle, which may run code: read only what hosts that you trust have written.

    Raises `volley.Refused` or `volley.RunFailed` where there are snapshots, and none can be brought back.
    """

    def __init__(
        self,
        root: Union[str, os.PathLike[str]],
        step: Optional[int] = None,
        *,
        address: Optional[str] = None,
        port: int = 0,
        flags: Sequence[str] = (),
    ) -> None:
        self._nodes = _nodes(Path(root).absolute(), address, port, flags)
        _alone(self._nodes)
        self.step = self._nodes.bring_back(step)
        self._at: Dict[str, Member] = {} if self.step is None else self._nodes.files(self.step)
        super().__init__(self._nodes.root / f"step-{self.step}")
        self._metadata: Optional[Metadata] = None

    def reset(self, checkpoint_id: Any = None) -> None:
        """Takes the name by which DCP knows the checkpoint, if that is the one which was brought back."""
        if checkpoint_id is not None and _step_of(checkpoint_id) != self.step:
            raise ValueError(f"checkpoint_id={checkpoint_id!r}: the reader has step-{self.step}: make another one, with step")
        super().reset()

    @_logged
    def read_metadata(self, *arguments: Any, **named: Any) -> Metadata:
        """Reads the metadata, which each node has. All ranks call it: a new node has it from another one."""
        _alone(self._nodes)
        if self.step is None:
            raise Refused(f"no snapshot below {self._nodes.root} was ever protected: see step", 2, "checkpoint")
        member = self._at.get(_METADATA)
        if member is None:
            raise Refused(f"step-{self.step} has no {_METADATA}: no Writer has written it", 2, "checkpoint")
        told: List[Any] = ["", b""]
        if self._nodes.rank == member[0]:
            try:
                told[1] = (self._nodes.path(member, self.step) / _METADATA).read_bytes()
            except OSError as e:
                told[0] = str(e)
        dist.broadcast_object_list(told, member[0], group=self._nodes.group)
        if told[0]:
            raise RunFailed(told[0], 1, "checkpoint")
        return pickle.loads(told[1])

    @_logged
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *arguments: Any, **named: Any) -> None:
        super().set_up_storage_reader(metadata, is_coordinator, *arguments, **named)
        self._metadata = metadata
        lacking = sorted({s.relative_path for s in metadata.storage_data.values()} - set(self._at))
        if lacking:
            raise Refused(f"step-{self.step} lacks {', '.join(lacking[:3])}{' …' if lacking[3:] else ''}: nodes that had saved it are left out", 2, "checkpoint")

    @_logged
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads what lies at this node, and has the rest sent. All ranks come here, also those with nothing to read."""
        nodes = self._nodes
        own = nodes.leaders[nodes.rank]
        far: List[ReadItem] = []
        error = ""
        near: Dict[Member, List[ReadItem]] = {}
        for item in plan.items:
            member = self._at[self.storage_data[item.storage_index].relative_path]
            if member[0] == own:
                near.setdefault(member, []).append(item)
            else:
                far.append(item)
        try:
            for member, items in near.items():
                self._read(member, items, planner)
        except Exception as e:
            error = str(e) or repr(e)
        wanted = [(r, item) for r, items in enumerate(nodes.agree(error, far)) for item in items]
        members = [self._at[self.storage_data[item.storage_index].relative_path] for _, item in wanted]

        def give(i: int) -> torch.Tensor:
            part = _Part(self._metadata)
            self._read(members[i], [wanted[i][1]], part)
            return part.bytes

        def take(i: int, data: torch.Tensor) -> None:
            item = wanted[i][1]
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(data.numpy().tobytes()))
                return
            target = planner.resolve_tensor(item).detach()
            target.copy_(data.view(_dtype(self._metadata, item)).reshape(item.lengths))
            planner.commit_tensor(item, target)

        nodes.move([(member[0], r) for member, (r, _) in zip(members, wanted)], give, take)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _read(self, member: Member, items: List[ReadItem], planner: Any) -> None:
        """Reads items of files that lie at a member of this node."""
        assert self.step is not None
        self.path: Path = self._nodes.path(member, self.step)
        super().read_data(LoadPlan([item for item in items if not self._placed(item, planner)]), planner).wait()

    def _placed(self, item: ReadItem, planner: Any) -> bool:
        """Reads the part of a tensor from its file into its place, or nothing where it does not lie there as it is in memory.

        torch.load reads all of the tensor into other memory, from which it is copied.
        """
        info = self.storage_data[item.storage_index]
        if item.type == LoadItemType.BYTE_IO or math.prod(item.lengths) == 0:
            return False
        dtype = _dtype(self._metadata, item)
        with open(self.path / info.relative_path, "rb") as whole:
            file = _Section(whole, info.offset, info.length)
            start = _start(file, item, dtype)
            if start is None:
                return False
            target = planner.resolve_tensor(item).detach()
            data = target
            if type(target) is not torch.Tensor or target.device.type != "cpu" or target.dtype != dtype or not target.is_contiguous() or target.is_conj() or target.is_neg():
                data = torch.empty(item.lengths, dtype=dtype)
            assert data.size() == item.lengths, f"{item.storage_index}: {tuple(data.size())}, and {tuple(item.lengths)} is read"
            file.seek(start)
            if file.readinto(data.view(-1).view(torch.uint8).numpy().data) != data.nbytes:
                raise EOFError(f"{whole.name} ends within {item.storage_index.fqn}")
        if data is not target:
            target.copy_(data)
        planner.commit_tensor(item, target)
        return True


class _Section(io.RawIOBase):
    """A file that is a section of another one."""

    def __init__(self, file: Any, start: int, size: int) -> None:
        self._file, self._start, self._size, self._at = file, start, size, 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, memory: Any) -> int:
        self._file.seek(self._start + self._at)
        n = int(self._file.readinto(memoryview(memory)[: max(0, self._size - self._at)]))
        self._at += n
        return n


class _Layout(pickle.Unpickler):
    """Reads how a tensor lies in its file: what torch.load makes it from, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name.endswith("Storage"):
            return name
        return {"torch._utils._rebuild_tensor_v2": lambda *arguments: arguments, "collections.OrderedDict": dict}[f"{module}.{name}"]

    def persistent_load(self, pid: Any) -> Any:
        return pid


def _layout(file: Any) -> Tuple[Any, str, zipfile.ZipInfo]:
    """Returns what a tensor is made from, the order of its bytes, and their record, of a file by torch.save."""
    with zipfile.ZipFile(file) as z:
        records = {name.partition("/")[2]: name for name in z.namelist()}
        arguments = _Layout(io.BytesIO(z.read(records["data.pkl"]))).load()
        return arguments, z.read(records["byteorder"]).decode(), z.getinfo(records[f"data/{arguments[0][2]}"])


@functools.lru_cache(maxsize=None)
def _storage(dtype: torch.dtype) -> Any:
    """Returns the name that torch.save has for the memory of tensors of a type."""
    file = io.BytesIO()
    torch.save(torch.empty(1, dtype=dtype), file)
    return _layout(file)[0][0][1]


def _start(file: Any, item: ReadItem, dtype: torch.dtype) -> Optional[int]:
    """Returns from where on a part of a tensor lies in its file, row after row, or None: it does not, or nobody can tell."""
    try:
        (storage, offset, size, stride, _, _), order, record = _layout(file)
        _, name, _, _, count = storage
        plain = name == _storage(dtype) and order == sys.byteorder and record.compress_type == zipfile.ZIP_STORED
    except Exception:  # torch.load knows more, or says what is wrong
        return None
    whole = offset == 0 and count == math.prod(size) and record.file_size == count * dtype.itemsize
    rows = size[1:] == tuple(item.lengths[1:]) and stride == torch.empty(size, device="meta").stride()
    if not (plain and whole and rows):
        return None
    file.seek(record.header_offset + 26)
    name_bytes, extra_bytes = struct.unpack("<HH", file.read(4))
    before = item.storage_offsets[0] * stride[0] if size else 0
    return int(record.header_offset + 30 + name_bytes + extra_bytes + before * dtype.itemsize)


class _Part:
    """Takes the part of a tensor that a reader elsewhere needs, in the place of its planner."""

    def __init__(self, metadata: Any) -> None:
        self._metadata = metadata
        self.bytes = torch.empty(0, dtype=torch.uint8)

    def load_bytes(self, item: ReadItem, value: io.BytesIO) -> None:
        self.bytes = torch.frombuffer(bytearray(value.getvalue()), dtype=torch.uint8)

    def resolve_tensor(self, item: ReadItem) -> torch.Tensor:
        return torch.empty(item.lengths, dtype=_dtype(self._metadata, item))

    def commit_tensor(self, item: ReadItem, tensor: torch.Tensor) -> None:
        self.bytes = tensor.reshape(-1).view(torch.uint8)


def _dtype(metadata: Any, item: ReadItem) -> torch.dtype:
    """Returns the type in which a tensor was saved."""
    found: torch.dtype = metadata.state_dict_metadata[item.storage_index.fqn].properties.dtype
    return found
