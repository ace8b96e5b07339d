"""Where the memory of an object is: by the buffer protocol, or by DLPack, as tensors of many frameworks say it."""

from __future__ import annotations

import ctypes
from typing import Any, List, Tuple

import numpy as np

_ON_HOST = (1, 3)  # kDLCPU, and kDLCUDAHost, which is pinned
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY


class _Tensor(ctypes.Structure):
    """DLTensor, which is where a DLManagedTensor begins."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),  # in elements; NULL: C-contiguous
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def memory_of(name: str, of: Any, write: bool) -> Tuple[int, int]:
    """Returns the address and the bytes. They are good while nothing is done with the object.

    Raises TypeError where the object does not say it, and ValueError where the memory will not do.
    """
    try:
        view = memoryview(of)
    except TypeError:
        if not hasattr(of, "__dlpack__") or not hasattr(of, "__dlpack_device__"):
            raise TypeError(f"{name}: {type(of).__name__}: want a NumPy array, a tensor, or what has the buffer protocol") from None
        return _by_dlpack(name, of, write)
    with view:
        if "O" in view.format:
            raise TypeError(f"{name}: Python objects: their bytes are addresses")
        if not view.c_contiguous:
            raise ValueError(f"{name}: not C-contiguous: make a copy that is")
        if write and view.readonly:
            raise ValueError(f"{name}: read-only, and it would be written")
        return int(np.frombuffer(view, np.uint8).ctypes.data) if view.nbytes else 0, view.nbytes


def _by_dlpack(name: str, of: Any, write: bool) -> Tuple[int, int]:
    kind = int(of.__dlpack_device__()[0])
    if kind not in _ON_HOST:
        raise ValueError(f"{name}: on a device of DLPack's kind {kind}: copy it to the host")
    try:
        try:
            capsule = of.__dlpack__(max_version=(1, 0))
        except TypeError:  # it knows the protocol without versions
            capsule = of.__dlpack__()
    except Exception as e:  # such as of a tensor that requires gradients
        raise ValueError(f"{name}: {e}") from None
    read_only = False
    if _is_valid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise ValueError(f"{name}: version {managed.major} of DLPack: want 1")
        t, read_only = managed.tensor, bool(managed.flags & _READ_ONLY)
    else:
        t = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    shape = [t.shape[i] for i in range(t.ndim)]
    elements = 1
    for n in shape:
        elements *= n
    if elements and t.strides and not _contiguous(shape, [t.strides[i] for i in range(t.ndim)]):
        raise ValueError(f"{name}: not C-contiguous: pass contiguous() of it")
    if write and read_only:
        raise ValueError(f"{name}: read-only, and it would be written")
    if t.bits * t.lanes % 8:
        raise ValueError(f"{name}: elements of {t.bits * t.lanes} bits: want bytes")
    return (t.data or 0) + t.byte_offset, elements * t.bits * t.lanes // 8


def _contiguous(shape: List[int], strides: List[int]) -> bool:
    want = 1
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n > 1 and stride != want:
            return False
        want *= n
    return True
