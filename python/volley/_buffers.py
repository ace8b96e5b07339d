"""Tensors in memory, with parity: each rank has a child that maps the memory of its tensors."""

from __future__ import annotations

import json
import mmap
import os
import stat
from bisect import bisect
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist

from ._nodes import Ranks, our_group
from ._run import log

Tensors = Union[Sequence[torch.Tensor], Mapping[str, torch.Tensor]]

_ALIGN = 64  # of tensors in the memory of their copies


class Options(NamedTuple):
    """What all ranks say alike."""

    tolerate: int
    parity: bool  # it has its memory already
    digest: Optional[str]
    port: int
    flags: Tuple[str, ...]

    def wrong(self, least: int) -> str:
        """Says what cannot be, where so many ranks have to be tolerated at least, or nothing."""
        for name, value, of in ("tolerate", self.tolerate, least), ("port", self.port, 0):
            if not isinstance(value, int) or isinstance(value, bool) or value < of:
                return f"{name}={value!r}: want a whole number, {of} or more"
        ranks = dist.get_world_size()
        if ranks <= max(self.tolerate, 1):
            return f"to lose {max(self.tolerate, 1)} ranks takes {max(self.tolerate, 1) + 1} or more, and there are {ranks}"
        return ""


class _Mapping(NamedTuple):
    """A part of a file in the memory of this process, which others may map."""

    start: int
    end: int
    offset: int
    file: Tuple[int, int]  # device and inode
    path: str


class Memory:
    """Memory of this process as parts of files, which a child may map.

    What lies in a file already, as tensors in shared memory do, stays there. The child gets a copy of the rest.
    """

    def __init__(self) -> None:
        self._mappings: Optional[List[_Mapping]] = None
        self._open: Dict[Tuple[int, int], int] = {}  # files of mappings
        self._descriptors: Optional[Dict[Tuple[int, int], str]] = None  # files that this process has open
        self.files: List[int] = []
        self._copies: List[Tuple[torch.Tensor, Dict[str, int], bool]] = []
        self._copied: List[torch.Tensor] = []

    def add(self, t: torch.Tensor, written: bool) -> Dict[str, int]:
        """Returns where a child finds a tensor, once `copy` was called. It may be written there."""
        t = t.detach()
        bytes_ = t.numel() * t.element_size()
        found = self._find(t.data_ptr(), bytes_) if bytes_ and t.is_contiguous() else None
        span = {"fd": found[0], "offset": found[1], "bytes": bytes_} if found else {"fd": -1, "offset": 0, "bytes": bytes_}
        if not found:
            self._copies.append((t, span, written))
        return span

    def create(self, name: str, size: int = 0) -> int:
        """Makes a file in memory."""
        fd = os.memfd_create(name, os.MFD_CLOEXEC)
        self.files.append(fd)
        os.ftruncate(fd, size)
        return fd

    def copy(self, fill: bool) -> None:
        """Makes memory for what lies in no file, and fills it."""
        at = 0
        for _, span, _ in self._copies:
            span["offset"] = at
            at += -(-span["bytes"] // _ALIGN) * _ALIGN
        if not self._copies:
            return
        fd = self.create("volley-tensors", at)
        memory = mapped(fd, at)
        for t, span, _ in self._copies:
            span["fd"] = fd
            copy = memory[span["offset"] : span["offset"] + span["bytes"]].view(t.dtype).view(t.shape)
            self._copied.append(copy)
            if fill:
                copy.copy_(t)

    def copy_back(self) -> None:
        """Has tensors what the child has made of their copies."""
        for (t, _, written), copy in zip(self._copies, self._copied):
            if written:
                t.copy_(copy)

    def close(self) -> None:
        for fd in self.files:
            os.close(fd)

    def _find(self, address: int, size: int) -> Optional[Tuple[int, int]]:
        """Returns the file of so many bytes at an address, and where they are in it. None: they are in none."""
        if self._mappings is None:
            self._mappings = _mappings()
            self._starts = [m.start for m in self._mappings]
        i = bisect(self._starts, address) - 1
        if i < 0 or address + size > self._mappings[i].end:
            return None
        m = self._mappings[i]
        if m.file not in self._open:
            self._open[m.file] = self._reopen(m)
        fd = self._open[m.file]
        return None if fd < 0 else (fd, m.offset + address - m.start)

    def _reopen(self, m: _Mapping) -> int:
        """Opens the file of a mapping, or returns -1. It may have no name any more, and is then open somewhere."""
        if self._descriptors is None:
            self._descriptors = {}
            for name in os.listdir("/proc/self/fd"):
                path = f"/proc/self/fd/{name}"
                found = _identity(path)
                if found:
                    self._descriptors[found] = path
        for path in (m.path, self._descriptors.get(m.file, "")):
            if _identity(path) == m.file:
                try:
                    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                except OSError:
                    continue
                self.files.append(fd)
                return fd
        return -1


def _identity(path: str) -> Optional[Tuple[int, int]]:
    """Returns the device and inode of a file. None: it is something else, or not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _mappings() -> List[_Mapping]:
    """Returns the parts of files that this process shares with others, by address."""
    found = []
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            place, access, offset, device, inode, *path = line.rstrip("\n").split(maxsplit=5)
            if access[3] == "s" and inode != "0":
                start, end = (int(x, 16) for x in place.split("-"))
                major, minor = (int(x, 16) for x in device.split(":"))
                found.append(_Mapping(start, end, int(offset, 16), (os.makedev(major, minor), int(inode)), path[0] if path else ""))
    return found


def mapped(fd: int, size: int) -> torch.Tensor:
    """Returns the bytes of a file, which lives as long as they do."""
    return torch.frombuffer(mmap.mmap(fd, size), dtype=torch.uint8) if size else torch.empty(0, dtype=torch.uint8)


def listed(tensors: Tensors) -> List[torch.Tensor]:
    """Returns tensors in their order: those of a dict by their names. Raises TypeError or ValueError where one will not do."""
    if isinstance(tensors, Mapping):
        named = [(f"tensors[{name!r}]", tensors[name]) for name in sorted(tensors, key=str)]
    elif isinstance(tensors, Sequence):
        named = [(f"tensors[{i}]", t) for i, t in enumerate(tensors)]
    else:
        raise TypeError(f"tensors: {type(tensors).__name__}: want a list or a dict of tensors")
    for name, t in named:
        _check(name, t)
    return [t for _, t in named]


def _check(name: str, t: Any) -> None:
    if type(t) not in (torch.Tensor, torch.nn.Parameter):
        raise TypeError(f"{name}: {type(t).__name__}: want a tensor")
    if t.device.type != "cpu":
        raise ValueError(f"{name}: on {t.device}: copy it to the host, where it stays as it is until the next set is protected")
    if t.layout != torch.strided or t.is_quantized:
        raise ValueError(f"{name}: sparse or quantized: give the tensors that it is made of")
    if any(n > 1 and stride == 0 for n, stride in zip(t.shape, t.stride())):
        raise ValueError(f"{name}: expanded: its elements share memory; give contiguous() of it")


class Request:
    """What all ranks do together: `run` runs the binary with the tensors of this rank."""

    def __init__(self, options: Options, least: int, address: Optional[str], tensors: Tensors, parity: Optional[torch.Tensor]) -> None:
        self._ranks = Ranks(address, options.port, options.flags, our_group())
        self._tensors: List[torch.Tensor] = []
        self._parity = parity
        error = ""
        try:
            self._tensors = listed(tensors)
            if parity is not None or options.parity:
                _check("parity", parity)
                assert parity is not None
                if parity.dtype != torch.uint8 or parity.dim() != 1:
                    raise TypeError(f"parity: {parity.dtype} of {parity.dim()} dimensions: want what protect has returned")
        except (TypeError, ValueError) as e:
            error = str(e)
        self._ranks.alike(options._asdict(), error or options.wrong(least))
        self._options = options

    def run(self, what: str, lost: bool = False) -> Tuple[Any, Optional[torch.Tensor]]:
        """Returns what the child has printed, and the parity."""
        memory, error, fd, spans = Memory(), "", -1, {}
        try:
            try:
                spans = self._share(memory, what, lost)
                fd = memory.create("volley-list")
                with open(fd, "w", encoding="utf-8", closefd=False) as f:
                    json.dump(spans, f)
            except (OSError, RuntimeError) as e:  # no memory, or no descriptors
                error = str(e) or repr(e)
            self._ranks.agree(error)
            o = self._options
            flags = ["--list", str(fd), *(["--lost"] if lost else []), *(["--tolerate", str(o.tolerate)] if o.tolerate else []), *(["--digest", o.digest] if o.digest else [])]
            report = self._ranks.everyone("buffers", flags, [what], memory.files)
            memory.copy_back()
            if what == "recover" and self._ranks.rank == 0:
                for note in report.get("notes", []):
                    log.warning("%s", note)
            if spans.get("room"):
                room = spans["parity"]["fd"]
                return report, mapped(room, os.fstat(room).st_size)
            return report, self._parity
        finally:
            memory.close()

    def _share(self, memory: Memory, what: str, lost: bool) -> Dict[str, Any]:
        """Returns the memory of this rank as a child finds it."""
        spans: Dict[str, Any] = {"buffers": [memory.add(t, what == "recover") for t in self._tensors]}
        if self._parity is not None:
            spans["parity"] = memory.add(self._parity, what != "sizes")
        elif what == "protect":
            spans["parity"], spans["room"] = {"fd": memory.create("volley-parity"), "offset": 0, "bytes": 0}, True
        memory.copy(fill=not lost and what != "parity-bytes")
        return spans
