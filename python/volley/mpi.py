"""Encode, protect and recover what the processes of an MPI job have, by libvolley, with mpi4py and NumPy.

    volley.mpi.protect(MPI.COMM_WORLD, "/dev/shm/ckpt", tolerate=2)       # in every process: its node's directory
    parity = volley.mpi.protect_buffers(MPI.COMM_WORLD, [weights, moments], tolerate=2)   # arrays, without files
    coded = volley.mpi.encode(MPI.COMM_WORLD, array)

All processes of a communicator call a function together, like a collective of MPI. volley.h describes each function.
An array is one of NumPy, a tensor in the memory of the host that DLPack exports, or what has the buffer protocol.
Where the arguments are wrong at one process, it raises TypeError or ValueError, and the others RunFailed.

The library is the one that `$VOLLEY_LIBRARY` names, else the one that `make install` has put below `sys.prefix`, else
what the loader finds as libvolley.so.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import weakref
from pathlib import Path
from typing import Any, Callable, Dict, Generic, Iterator, List, Optional, Sequence, Set, Tuple, TypeVar, Union

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from ._memory import memory_of
from ._run import Dir, Error, NotWhole, failure, log
from ._version import __version__

__all__ = [
    "LATEST",
    "Encoding",
    "Report",
    "Request",
    "buffer_sizes",
    "decode",
    "empty",
    "encode",
    "parity_bytes",
    "protect",
    "protect_buffers",
    "protect_buffers_start",
    "protect_start",
    "recover",
    "recover_buffers",
    "recover_buffers_start",
    "status",
    "step_path",
    "unprotect",
    "verify",
]

LATEST = -1  # the newest snapshot, as a step

Array = Any  # of NumPy, a tensor of the host by DLPack, or what has the buffer protocol
Made = npt.NDArray[Any]
T = TypeVar("T")


class _Options(ctypes.Structure):
    """volley_options."""

    _fields_ = [
        ("field", ctypes.c_char_p),
        ("matrix", ctypes.c_char_p),
        ("algorithm", ctypes.c_char_p),
        ("ports", ctypes.c_int),
        ("timeout", ctypes.c_double),
        ("memory", ctypes.c_size_t),
        ("unchecked", ctypes.c_int),
        ("network", ctypes.c_char_p),
    ]


class _GroupOptions(ctypes.Structure):
    """volley_group_options."""

    _fields_ = [
        ("timeout", ctypes.c_double),
        ("memory", ctypes.c_size_t),
        ("key", ctypes.c_char_p),
        ("digest", ctypes.c_char_p),
        ("step", ctypes.POINTER(ctypes.c_longlong)),
        ("retain", ctypes.c_int),
        ("set_size", ctypes.c_int),
        ("domain", ctypes.c_char_p),
    ]


class Report(ctypes.Structure):
    """How the nodes of a group are: volley_report."""

    _fields_ = [
        *((name, ctypes.c_int) for name in ("is_protected", "whole", "recoverable", "nodes", "tolerate", "broken", "lost", "may_lose", "set", "sets")),
        *((name, ctypes.c_longlong) for name in ("files_at_risk", "since", "generation", "step")),
    ]


class _Buffer(ctypes.Structure):
    """volley_buffer."""

    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


_PACKET = [ctypes.c_void_p, ctypes.c_size_t]
_GROUP = ctypes.POINTER(_GroupOptions)
_BUFFERS = [ctypes.POINTER(_Buffer), ctypes.c_int, ctypes.c_int, *_PACKET, _GROUP]
_REQUEST = ctypes.POINTER(ctypes.c_int)
_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
_FUNCTIONS: Dict[str, List[Any]] = {  # with their arguments after the communicator
    "encode": [*_PACKET, *_PACKET, ctypes.POINTER(_Options)],
    "alloc": [ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)],
    "encode_init": [*_PACKET, *_PACKET, ctypes.POINTER(_Options), ctypes.POINTER(ctypes.c_int)],
    "encode_new": [*_PACKET, _ALLOCATE, ctypes.POINTER(_Options)],
    "refuse": [ctypes.c_char_p, ctypes.c_double],
    "decode": [*_PACKET, ctypes.c_int, *_PACKET, ctypes.POINTER(_Options)],
    "protect": [ctypes.c_char_p, ctypes.c_int, _GROUP],
    "protect_start": [ctypes.c_char_p, ctypes.c_int, _GROUP, _REQUEST],
    "recover": [ctypes.c_char_p, _GROUP],
    "verify": [ctypes.c_char_p, _GROUP, ctypes.POINTER(Report)],
    "status": [ctypes.c_char_p, _GROUP, ctypes.POINTER(Report)],
    "unprotect": [ctypes.c_char_p, _GROUP],
    "parity_bytes": [ctypes.POINTER(_Buffer), ctypes.c_int, ctypes.c_int, _GROUP, ctypes.POINTER(ctypes.c_size_t)],
    "buffer_sizes": [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_int), _GROUP],
    "protect_buffers": _BUFFERS,
    "protect_buffers_start": [*_BUFFERS, _REQUEST],
    "recover_buffers": _BUFFERS,
    "recover_buffers_start": [*_BUFFERS, _REQUEST],
}

_lock = threading.Lock()
_loaded: Optional[Tuple[ctypes.CDLL, int]] = None  # the library, and the process that has loaded it


def _load() -> ctypes.CDLL:
    installed = Path(sys.prefix, "lib", "libvolley.so")
    name = os.environ.get("VOLLEY_LIBRARY") or (str(installed) if installed.exists() else "libvolley.so")
    try:
        library = ctypes.CDLL(name)
        library.volley_version.restype = library.volley_error.restype = ctypes.c_char_p
    except (OSError, AttributeError) as e:
        raise ImportError(f"{e}: no libvolley: install it by make install, and name it in VOLLEY_LIBRARY") from None
    version = library.volley_version().decode()
    if version.split("+")[0] != __version__:  # its structs may be others; a commit may follow
        raise ImportError(f"{name} is libvolley {version}, and this package {__version__}: install both from one tree")
    text, length = ctypes.create_string_buffer(MPI.MAX_LIBRARY_VERSION_STRING), ctypes.c_int()
    library.MPI_Get_library_version(text, ctypes.byref(length))
    theirs, ours = _one_line(text.value.decode()), _one_line(MPI.Get_library_version())
    if theirs != ours:
        raise ImportError(f"{name} uses {theirs!r}, and mpi4py {ours!r}: build libvolley with the MPI of mpi4py")
    for function, arguments in _FUNCTIONS.items():
        getattr(library, "volley_" + function + "_f").argtypes = [ctypes.c_int, *arguments]
    library.volley_free.argtypes = [ctypes.c_void_p]
    library.volley_step_path.argtypes = [ctypes.c_char_p, ctypes.c_longlong, ctypes.c_char_p, ctypes.c_size_t]
    return library


def _one_line(text: str) -> str:
    """Returns text with single blanks, as mpi4py cuts what is at its end, such as a tab of MPICH's."""
    return " ".join(text.replace("\0", " ").split())


def _library() -> ctypes.CDLL:
    global _loaded
    with _lock:
        _loaded = _loaded or (_load(), os.getpid())
    library, process = _loaded
    if process != os.getpid():
        raise RuntimeError("this process was forked from one that uses libvolley and MPI, which do not work here: start it by spawn")
    return library


def _call(function: str, comm: MPI.Comm, timeout: float, arguments: Callable[[], Sequence[Any]]) -> None:
    """Calls a function of the library, by the Fortran handle of the communicator, and raises its error.

    Where the arguments are wrong here, the other processes hear of that in place of the call: else they would wait.
    """
    library = _library()
    if not isinstance(comm, MPI.Comm):
        raise TypeError(f"comm: {type(comm).__name__}: want a communicator of mpi4py")
    runs = MPI.Is_initialized() and not MPI.Is_finalized()  # else the library says so
    handle = comm.py2f() if runs else -1
    try:
        code = getattr(library, "volley_" + function + "_f")(handle, *arguments())
    except Exception as e:  # ctypes raises before it calls
        seconds = timeout if isinstance(timeout, (int, float)) else 0
        library.volley_refuse_f(handle, f"{type(e).__name__}: {e}".encode("utf-8", "replace"), seconds)
        raise
    _ended(code, function.replace("_new", ""))


def _ended(code: int, function: str) -> None:
    """Raises the error of a call. What recover_buffers has found goes to the log."""
    text = _library().volley_error().decode("utf-8", "replace")
    if code:
        raise failure(code, text, function)
    if text:
        log.warning("%s", text)


def _memory(name: str, array: Array, write: bool) -> Tuple[int, int]:
    """Returns the address and the bytes of an array, or of something else that says where its memory is."""
    if not isinstance(array, np.ndarray):
        return memory_of(name, array, write)
    if array.dtype.hasobject:
        raise TypeError(f"{name}: an array of Python objects: their bytes are addresses")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name}: not C-contiguous: pass numpy.ascontiguousarray of it")
    if write and not array.flags.writeable:
        raise ValueError(f"{name}: read-only, and it would be written")
    return array.ctypes.data, array.nbytes


def _text(value: Optional[Dir]) -> Optional[bytes]:
    if value is None:
        return None
    text = os.fsencode(value)
    if b"\0" in text:
        raise ValueError(f"{value!r}: has a null character")
    return text


def _whole(name: str, number: int) -> int:
    if not isinstance(number, int):
        raise TypeError(f"{name}={number!r}: want a whole number")
    return number


def _list(arrays: Sequence[Array], write: bool) -> Tuple[Any, int]:
    """Returns the list of buffers that arrays are, and how many there are."""
    if isinstance(arrays, np.ndarray) or hasattr(arrays, "__dlpack__"):
        raise TypeError("arrays: one array: want a list of arrays")
    if isinstance(arrays, Iterator):  # the next look at it would find nothing
        raise TypeError(f"arrays: {type(arrays).__name__}: want a list of arrays")
    memory = [_Buffer(*_memory(f"arrays[{i}]", a, write)) for i, a in enumerate(arrays)]
    return (_Buffer * len(memory))(*memory), len(memory)


class Request(Generic[T]):
    """A call that goes on beside the caller. Its arrays are held until it is done, and a process waits at its end."""

    def __init__(self, function: str, handle: ctypes.c_int, result: T, arrays: Sequence[Array]) -> None:
        self._function, self._handle, self._result, self._arrays = function, handle, result, arrays
        self._lock = threading.Lock()
        self._done = False
        self._error: Optional[Error] = None
        _open.add(self)

    def test(self) -> bool:
        """Says whether it is done. Raises its error."""
        if not self._lock.acquire(blocking=False):  # another thread waits
            return False
        try:
            done = ctypes.c_int(1)
            if not self._done:
                code = _library().volley_test(ctypes.byref(self._handle), ctypes.byref(done))
                if done.value:
                    self._end(code)
        finally:
            self._lock.release()
        if self._error:
            raise self._error
        return bool(done.value)

    def wait(self) -> T:
        """Waits until it is done, and returns what the function without `_start` returns. Raises its error."""
        with self._lock:
            if not self._done:
                self._end(_library().volley_wait(ctypes.byref(self._handle)))
        if self._error:
            raise self._error
        return self._result

    def _end(self, code: int) -> None:
        self._done, self._arrays = True, ()
        _open.discard(self)
        try:
            _ended(code, self._function)
        except Error as e:
            self._error = e


_open: Set[Request[Any]] = set()  # the library writes to their arrays


@atexit.register
def _wait_for_all() -> None:
    if _loaded and _loaded[1] == os.getpid():
        for request in list(_open):
            try:
                request.wait()
            except Error as e:
                log.error("%s", e)


def _start(function: str, comm: MPI.Comm, timeout: float, result: T, arrays: Sequence[Array], arguments: Callable[[], Sequence[Any]]) -> Request[T]:
    handle = ctypes.c_int()
    _call(function, comm, timeout, lambda: (*arguments(), ctypes.byref(handle)))
    return Request(function, handle, result, arrays)


def encode(
    comm: MPI.Comm,
    packet: Array,
    out: Optional[Array] = None,
    *,
    field: Optional[str] = None,
    matrix: Optional[str] = None,
    algorithm: Optional[str] = None,
    ports: int = 0,
    timeout: float = 0,
    memory: int = 0,
    check: bool = True,
    network: Optional[str] = None,
) -> Made:
    """Encodes: returns the coded packet of this process, the sum of A[i][rank] * x_i over the packets x_i of all.

    A packet is the bytes of an array, padded with zeros to the longest of all. The coded packet is as long, of uint8,
    or is written to `out`. `timeout` is in seconds, 0 the default of 30 and below 0 none; `memory` is in bytes.
    `field`, `matrix`, `algorithm`, `ports` and `network` are those of `volley encode --help`. For many calls on the
    same arrays see `Encoding`.

    Raises `Refused`, `RunFailed`, or `NotWhole` where the result failed its check.
    """
    made: List[Made] = [] if out is None else [out]

    def arguments() -> Sequence[Any]:
        o = _Options(_text(field), _text(matrix), _text(algorithm), ports, timeout, memory, not check, _text(network))
        has = _memory("packet", packet, False)
        return (*has, _ALLOCATE(allocate), o) if out is None else (*has, *_memory("out", out, True), o)

    def allocate(n: int) -> int:
        made.append(np.empty(n, np.uint8))
        return int(made[0].ctypes.data)

    _call("encode_new" if out is None else "encode", comm, timeout, arguments)
    return made[0]


def empty(comm: MPI.Comm, shape: Union[int, Sequence[int]], dtype: npt.DTypeLike = float) -> Made:
    """Returns an array of zeros for an `Encoding`, of the same bytes at all processes.

    Where all processes of `comm` run on one host, all of them reach its memory, and nothing is copied. Elsewhere it is
    ordinary memory. It is freed with the last array that has a part of it. Raises `Refused` or `RunFailed`.
    """
    data, kind = ctypes.c_void_p(), np.dtype(dtype)
    bytes_ = int(np.prod(shape, dtype=object)) * kind.itemsize

    def arguments() -> Sequence[Any]:
        if kind.hasobject:
            raise TypeError(f"dtype: {kind}: an array of Python objects: their bytes are addresses")
        return bytes_, ctypes.byref(data)

    _call("alloc", comm, 0, arguments)
    assert data.value is not None
    memory = (ctypes.c_ubyte * bytes_).from_address(data.value)
    weakref.finalize(memory, _free, data.value, os.getpid()).atexit = False
    return np.ndarray(shape, kind, memoryview(memory))


def _free(address: int, process: int) -> None:
    if process == os.getpid():  # and not in one that was forked
        _library().volley_free(address)


class Encoding:
    """`encode` of the same arrays, many times: what does not depend on their bytes is done once.

    All processes make it, call `run` equally often, and `close` it before MPI ends. `out` has room for the longest
    packet. Arrays of `empty` are used where they lie. The options are those of `encode`.
    """

    def __init__(
        self,
        comm: MPI.Comm,
        packet: Array,
        out: Array,
        *,
        field: Optional[str] = None,
        matrix: Optional[str] = None,
        timeout: float = 0,
        memory: int = 0,
        check: bool = True,
    ) -> None:
        self._handle, self._arrays = ctypes.c_int(), (packet, out)

        def arguments() -> Sequence[Any]:
            o = _Options(_text(field), _text(matrix), None, 0, timeout, memory, not check, None)
            return *_memory("packet", packet, False), *_memory("out", out, True), o, ctypes.byref(self._handle)

        _call("encode_init", comm, timeout, arguments)
        _encodings.add(self)

    def run(self) -> None:
        """Encodes what `packet` has now into `out`. Raises `Refused`, `RunFailed`, or `NotWhole`."""
        _ended(_library().volley_run(ctypes.byref(self._handle)), "encode")

    def close(self) -> None:
        """Gives back what it holds. The arrays stay."""
        _ended(_library().volley_request_free(ctypes.byref(self._handle)), "encode")
        _encodings.discard(self)


_encodings: Set[Encoding] = set()  # the library reads and writes their arrays


def decode(
    comm: MPI.Comm,
    packet: Array,
    coded: Optional[Array],
    lost: bool = False,
    *,
    field: Optional[str] = None,
    matrix: Optional[str] = None,
    algorithm: Optional[str] = None,
    ports: int = 0,
    timeout: float = 0,
    memory: int = 0,
    check: bool = True,
    network: Optional[str] = None,
) -> None:
    """Decodes: writes to `packet` what it was, where it is `lost`. Any K of the 2 K packets and coded packets will do.

    `coded` is what `encode` has returned here, or None where that is lost, too. A process that does not know how long
    its packet was gives an array as long as a coded packet, and gets zeros after the end. The options are those of
    `encode`, the same as then. Packets that are damaged are not noticed: keep a checksum.

    Raises `Refused` where too few are left: then `packet` is as it was. Raises `RunFailed` or `NotWhole`.
    """

    def arguments() -> Sequence[Any]:
        has = (None, 0) if coded is None else _memory("coded", coded, False)
        o = _Options(_text(field), _text(matrix), _text(algorithm), ports, timeout, memory, not check, _text(network))
        return *_memory("packet", packet, lost), lost, *has, o

    _call("decode", comm, timeout, arguments)


def _step(step: Optional[int]) -> Any:
    """Returns where a call finds its step, and puts the one that it has taken."""
    return None if step is None else ctypes.pointer(ctypes.c_longlong(step))


def step_path(root: Dir, step: int) -> Path:
    """Makes a directory for the files of a snapshot, empty. `protect` with that step gives it the name `step-N` in the root."""
    path = ctypes.create_string_buffer(1 << 16)
    _ended(_library().volley_step_path(_text(root), step, path, len(path)), "step_path")
    return Path(os.fsdecode(path.value))


def protect(
    comm: MPI.Comm,
    path: Dir,
    tolerate: int,
    *,
    step: Optional[int] = None,
    retain: int = 0,
    timeout: float = 0,
    memory: int = 0,
    key: Optional[Dir] = None,
    digest: Optional[str] = None,
) -> Optional[int]:
    """Protects the directories of a group of nodes: any `tolerate` of them may then be lost.

    `path` is the directory of this process's node, which no other process has. Its files are written and closed. With
    `step`, a number or `LATEST`, it is a root of snapshots: returns the step that was taken. `retain` of them stay then.
    `timeout` is in seconds, 0 the default of 30 and below 0 none; `memory` is in bytes. The others are those of
    `volley protect --help`.

    Raises `Refused` or `RunFailed`. The earlier protection then stays in force.
    """
    at = _step(step)

    def arguments() -> Sequence[Any]:
        o = _GroupOptions(timeout, memory, _text(key), _text(digest), at, retain)
        return _text(path), _whole("tolerate", tolerate), o

    _call("protect", comm, timeout, arguments)
    return at[0] if at else None


def protect_start(
    comm: MPI.Comm,
    path: Dir,
    tolerate: int,
    *,
    step: Optional[int] = None,
    retain: int = 0,
    timeout: float = 0,
    memory: int = 0,
    key: Optional[Dir] = None,
    digest: Optional[str] = None,
) -> Request[None]:
    """Starts `protect`, which goes on beside the caller: leave the files alone until the request is done."""
    at = _step(step)

    def arguments() -> Sequence[Any]:
        o = _GroupOptions(timeout, memory, _text(key), _text(digest), at, retain)
        return _text(path), _whole("tolerate", tolerate), o

    return _start("protect_start", comm, timeout, None, [at], arguments)


def recover(
    comm: MPI.Comm,
    path: Dir,
    *,
    step: Optional[int] = None,
    timeout: float = 0,
    memory: int = 0,
    key: Optional[Dir] = None,
) -> Optional[int]:
    """Brings back what lost nodes had, and damaged files. `path` is the directory of the node of this rank.

    With `step`, a number or `LATEST`, it is a root of snapshots: returns the step that came back, of any number of
    processes. `timeout` and `memory` are those of `protect`.

    Raises `NotWhole` where not everything is back, `NothingProtected` where nothing was ever protected, and `Refused` or
    `RunFailed` where nothing is back.
    """
    at = _step(step)
    _call("recover", comm, timeout, lambda: (_text(path), _GroupOptions(timeout, memory, _text(key), None, at)))
    return at[0] if at else None


def verify(comm: MPI.Comm, path: Dir, *, step: Optional[int] = None, timeout: float = 0, memory: int = 0, key: Optional[Dir] = None) -> Report:
    """Reads all files of all nodes, and says how they are. The options are those of `recover`. Raises `Refused` or `RunFailed`."""
    return _examine("verify", comm, path, _GroupOptions(timeout, memory, key=_text(key), step=_step(step)))


def status(comm: MPI.Comm, path: Dir, *, step: Optional[int] = None, timeout: float = 0, key: Optional[Dir] = None) -> Report:
    """Is `verify` by names, lengths and times."""
    return _examine("status", comm, path, _GroupOptions(timeout, key=_text(key), step=_step(step)))


def _examine(function: str, comm: MPI.Comm, path: Dir, o: _GroupOptions) -> Report:
    report = Report()
    try:
        _call(function, comm, o.timeout, lambda: (_text(path), o, ctypes.byref(report)))
    except NotWhole:  # which the report says
        pass
    return report


def unprotect(comm: MPI.Comm, path: Dir, *, timeout: float = 0, key: Optional[Dir] = None) -> None:
    """Ends the protection. Your files stay. Raises `Refused` where something is lost or damaged."""
    _call("unprotect", comm, timeout, lambda: (_text(path), _GroupOptions(timeout, key=_text(key))))


def parity_bytes(
    comm: MPI.Comm,
    arrays: Sequence[Array],
    tolerate: int,
    *,
    timeout: float = 0,
    key: Optional[Dir] = None,
    digest: Optional[str] = None,
) -> int:
    """Returns how many bytes of parity `protect_buffers` makes for arrays of these lengths: the same at all processes."""
    n = ctypes.c_size_t()

    def arguments() -> Sequence[Any]:
        o = _GroupOptions(timeout, key=_text(key), digest=_text(digest))
        return *_list(arrays, False), _whole("tolerate", tolerate), o, ctypes.byref(n)

    _call("parity_bytes", comm, timeout, arguments)
    return n.value


def protect_buffers(
    comm: MPI.Comm,
    arrays: Sequence[Array],
    tolerate: int,
    parity: Optional[Array] = None,
    *,
    timeout: float = 0,
    memory: int = 0,
    key: Optional[Dir] = None,
    digest: Optional[str] = None,
) -> Made:
    """Protects arrays in memory: returns parity, of uint8, from which those of any `tolerate` processes come back.

    Processes may have any numbers of arrays, of any lengths. `parity` is room for the result, of `parity_bytes`. Keep
    two sets of arrays, each with its parity, and protect them in turns: the last one stays as it is until the next one
    is protected. `timeout` is in seconds, 0 the default of 30 and below 0 none; `memory` is in bytes.

    Raises `Refused` or `RunFailed`.
    """
    if parity is None:
        parity = np.zeros(parity_bytes(comm, arrays, tolerate, timeout=timeout, key=key, digest=digest), np.uint8)
    room = parity

    def arguments() -> Sequence[Any]:
        o = _GroupOptions(timeout, memory, key=_text(key), digest=_text(digest))
        return *_list(arrays, False), _whole("tolerate", tolerate), *_memory("parity", room, True), o

    _call("protect_buffers", comm, timeout, arguments)
    return room


def protect_buffers_start(
    comm: MPI.Comm,
    arrays: Sequence[Array],
    tolerate: int,
    parity: Optional[Array] = None,
    *,
    timeout: float = 0,
    memory: int = 0,
    key: Optional[Dir] = None,
    digest: Optional[str] = None,
) -> Request[Made]:
    """Starts `protect_buffers`, which goes on beside the caller: leave the arrays alone until the request is done."""
    if parity is None:
        parity = np.zeros(parity_bytes(comm, arrays, tolerate, timeout=timeout, key=key, digest=digest), np.uint8)
    room, held = parity, [parity]

    def arguments() -> Sequence[Any]:
        held.extend(arrays)
        o = _GroupOptions(timeout, memory, key=_text(key), digest=_text(digest))
        return *_list(arrays, False), _whole("tolerate", tolerate), *_memory("parity", room, True), o

    return _start("protect_buffers_start", comm, timeout, room, held, arguments)


def buffer_sizes(comm: MPI.Comm, parity: Optional[Array], *, timeout: float = 0, key: Optional[Dir] = None) -> Tuple[List[int], int]:
    """Tells a process that has lost its arrays what to make: the bytes of each array, and the bytes of the parity.

    `parity` is what this process has, or None where it is lost. Raises `Refused` where no process has enough of it.
    """
    count, room = ctypes.c_int(), ctypes.c_size_t()

    def tell(sizes: Any) -> Any:
        def arguments() -> Sequence[Any]:
            address, room.value = (None, 0) if parity is None else _memory("parity", parity, False)
            return address, room, sizes, count, _GroupOptions(timeout, key=_text(key))

        _call("buffer_sizes", comm, timeout, arguments)
        return sizes

    tell(None)
    return list(tell((ctypes.c_size_t * count.value)())), room.value


def recover_buffers(
    comm: MPI.Comm,
    arrays: Sequence[Array],
    parity: Array,
    lost: bool = False,
    *,
    timeout: float = 0,
    memory: int = 0,
    key: Optional[Dir] = None,
) -> None:
    """Brings back the arrays and the parity of the processes at which they are `lost`, whatever is in them there.

    The other processes give what they had. What is damaged of that comes back, too, and the logger `volley` has a
    warning. `buffer_sizes` tells how long arrays and parity were. `timeout` and `memory` are those of `protect_buffers`.

    Raises `Refused` where too much is lost: then nothing was written. After `RunFailed` call it again.
    """

    def arguments() -> Sequence[Any]:
        return *_list(arrays, True), lost, *_memory("parity", parity, True), _GroupOptions(timeout, memory, key=_text(key))

    _call("recover_buffers", comm, timeout, arguments)


def recover_buffers_start(
    comm: MPI.Comm,
    arrays: Sequence[Array],
    parity: Array,
    lost: bool = False,
    *,
    timeout: float = 0,
    memory: int = 0,
    key: Optional[Dir] = None,
) -> Request[None]:
    """Starts `recover_buffers`, which goes on beside the caller: leave the arrays alone until the request is done."""
    held = [parity]

    def arguments() -> Sequence[Any]:
        held.extend(arrays)
        return *_list(arrays, True), lost, *_memory("parity", parity, True), _GroupOptions(timeout, memory, key=_text(key))

    return _start("recover_buffers_start", comm, timeout, None, held, arguments)
