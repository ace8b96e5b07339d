"""Encode, protect and recover what the processes of an MPI job have, by libvolley, with mpi4py and NumPy.

    volley.mpi.protect(MPI.COMM_WORLD, "/dev/shm/ckpt", tolerate=2)       # in every process: its node's directory
    coded = volley.mpi.encode(MPI.COMM_WORLD, array)

All processes of a communicator call a function together, like a collective of MPI. volley.h describes each function.

The library is the one that `$VOLLEY_LIBRARY` names, else the one that `make install` has put below `sys.prefix`, else
what the loader finds as libvolley.so.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from ._run import Dir, failure
from ._version import __version__

Array = npt.NDArray[Any]


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
        ("packet_bytes", ctypes.c_size_t),
        ("network", ctypes.c_char_p),
    ]


class _GroupOptions(ctypes.Structure):
    """volley_group_options."""

    _fields_ = [
        ("timeout", ctypes.c_double),
        ("memory", ctypes.c_size_t),
        ("max_deleted", ctypes.c_double),
        ("allow_deleted", ctypes.c_int),
        ("revert", ctypes.c_int),
        ("believe", ctypes.c_char_p),
        ("key", ctypes.c_char_p),
        ("digest", ctypes.c_char_p),
    ]


_PACKET = [ctypes.c_void_p, ctypes.c_size_t]
_FUNCTIONS: Dict[str, List[Any]] = {  # with their arguments after the communicator
    "encode": [*_PACKET, *_PACKET, ctypes.POINTER(_Options)],
    "decode": [*_PACKET, ctypes.c_int, *_PACKET, ctypes.POINTER(_Options)],
    "protect": [ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(_GroupOptions)],
    "recover": [ctypes.c_char_p, ctypes.POINTER(_GroupOptions)],
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
    if version != __version__:  # its structs may be others
        raise ImportError(f"{name} is libvolley {version}, and this package {__version__}: install both from one tree")
    text, length = ctypes.create_string_buffer(MPI.MAX_LIBRARY_VERSION_STRING), ctypes.c_int()
    library.MPI_Get_library_version(text, ctypes.byref(length))
    if text.value.decode().strip() != MPI.Get_library_version().strip("\0 \n"):
        raise ImportError(f"{name} uses {text.value.decode()!r}, and mpi4py {MPI.Get_library_version()!r}: build libvolley with the MPI of mpi4py")
    for function, arguments in _FUNCTIONS.items():
        getattr(library, "volley_" + function + "_f").argtypes = [ctypes.c_int, *arguments]
    return library


def _library() -> ctypes.CDLL:
    global _loaded
    with _lock:
        _loaded = _loaded or (_load(), os.getpid())
    library, process = _loaded
    if process != os.getpid():
        raise RuntimeError("this process was forked from one that uses libvolley and MPI, which do not work here: start it by spawn")
    return library


def _call(function: str, comm: MPI.Comm, *arguments: Any) -> None:
    """Calls a function of the library, by the Fortran handle of the communicator, and raises its error."""
    library = _library()
    code = getattr(library, "volley_" + function + "_f")(comm.py2f(), *arguments)
    if code:
        raise failure(code, library.volley_error().decode("utf-8", "replace"), function)


def _memory(name: str, array: Array, write: bool) -> Tuple[int, int]:
    """Returns the address and the bytes of an array."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}: {type(array).__name__}: want a NumPy array")
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
    packet_bytes: int = 0,
    network: Optional[str] = None,
) -> Array:
    """Encodes: returns the coded packet of this process, the sum of A[i][rank] * x_i over the packets x_i of all.

    A packet is the bytes of an array, padded with zeros to the longest of all. The coded packet is as long, of uint8,
    or is written to `out`. `timeout` is in seconds, 0 the default of 30 and below 0 none; `memory` is in bytes.
    `packet_bytes` is a length that no packet of any call exceeds: calls then start with data. `field`, `matrix`,
    `algorithm`, `ports` and `network` are those of `volley encode --help`.

    Raises `Refused`, `RunFailed`, or `NotWhole` where the result failed its check.
    """
    if out is None:
        longest = packet_bytes or comm.allreduce(getattr(packet, "nbytes", 0), MPI.MAX)
        out = np.empty(longest, np.uint8)
    o = _Options(_text(field), _text(matrix), _text(algorithm), ports, timeout, memory, not check, packet_bytes, _text(network))
    _call("encode", comm, *_memory("packet", packet, False), *_memory("out", out, True), o)
    return out


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
    has = (None, 0) if coded is None else _memory("coded", coded, False)
    o = _Options(_text(field), _text(matrix), _text(algorithm), ports, timeout, memory, not check, 0, _text(network))
    _call("decode", comm, *_memory("packet", packet, lost), lost, *has, o)


def protect(
    comm: MPI.Comm,
    path: Dir,
    tolerate: int,
    *,
    timeout: float = 0,
    memory: int = 0,
    max_deleted: float = 0,
    allow_deleted: bool = False,
    believe: Optional[str] = None,
    key: Optional[Dir] = None,
    digest: Optional[str] = None,
) -> None:
    """Protects the directories of a group of nodes: any `tolerate` of them may then be lost.

    `path` is the directory of this process's node, which no other process has. Its files are written and closed.
    `timeout` is in seconds, 0 the default of 30 and below 0 none; `memory` is in bytes. The others are those of
    `volley protect --help`.

    Raises `Refused` or `RunFailed`. The earlier protection then stays in force.
    """
    o = _GroupOptions(timeout, memory, max_deleted, allow_deleted, 0, _text(believe), _text(key), _text(digest))
    _call("protect", comm, _text(path), tolerate, o)


def recover(
    comm: MPI.Comm,
    path: Dir,
    *,
    timeout: float = 0,
    memory: int = 0,
    revert: bool = False,
    believe: Optional[str] = None,
    key: Optional[Dir] = None,
) -> None:
    """Brings back what lost nodes had, and damaged files. `path` is the directory of the node of this rank.

    `revert` brings back changed files, too. `timeout` and `memory` are those of `protect`.

    Raises `NotWhole` where not everything is back, and `Refused` or `RunFailed` where nothing is.
    """
    o = _GroupOptions(timeout, memory, 0, 0, revert, _text(believe), _text(key), None)
    _call("recover", comm, _text(path), o)
