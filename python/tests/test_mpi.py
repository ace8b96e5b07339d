"""volley.mpi: mpirun -n 4 python3 -m pytest runs these tests in every process, and make mpi calls it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Callable, Iterator

import pytest

if "OMPI_COMM_WORLD_SIZE" not in os.environ:
    pytest.skip("these tests run under mpirun", allow_module_level=True)

import numpy as np
import volley
import volley.mpi
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A directory that all ranks see."""
    yield world.bcast(tmp_path)
    world.barrier()


def array(dtype: object, shape: object, seed: int = 0) -> np.ndarray:
    made = np.empty(shape, dtype)
    made.view(np.uint8).reshape(-1)[:] = np.random.default_rng(1000 * seed + rank).integers(0, 256, made.nbytes, np.uint8)
    return made


@pytest.mark.parametrize(
    "dtype, shape",
    [(np.uint8, (1000 + rank,)), (np.float64, (30 + rank, 7)), (np.complex64, (3, 2, 5)), ([("a", "i4"), ("b", "M8[s]")], (50,)), ("U3", (0,))],
    ids=["bytes", "unequal", "three axes", "structs", "empty"],
)
def test_what_is_encoded_comes_back(dtype: object, shape: object) -> None:
    packet = array(dtype, shape)
    was = packet.tobytes()
    packet.flags.writeable = False
    coded = volley.mpi.encode(world, packet)
    assert coded.dtype == np.uint8 and len(coded) == world.allreduce(packet.nbytes, MPI.MAX)
    out = np.empty(coded.nbytes // 2 * 2, np.uint8).reshape(2, -1) if coded.nbytes % 2 == 0 else np.empty_like(coded)
    assert volley.mpi.encode(world, packet, out, timeout=20, network="wan") is out and out.tobytes() == coded.tobytes()
    lost = rank >= ranks // 2
    back = np.full_like(packet, 0) if lost else packet
    volley.mpi.decode(world, back, coded if lost else None, lost)
    assert back.tobytes() == was and back.shape == packet.shape


WRONG = {
    "no array": lambda good: volley.mpi.encode(world, [1, 2], timeout=20),
    "out overlaps": lambda good: volley.mpi.encode(world, good, good, timeout=20),
    "a section": lambda good: volley.mpi.decode(world, good[::2], None, timeout=20),
    "a number": lambda good: volley.mpi.encode(world, good, good.copy(), timeout=20, ports="two"),
    "a null character": lambda good: volley.mpi.protect(world, "a\0b", 1, timeout=20),
    "no list": lambda good: volley.mpi.protect_buffers(world, 3, 1, timeout=20),
    "parity": lambda good: volley.mpi.protect_buffers(world, [good], 1, "parity", timeout=20),
    "sizes": lambda good: volley.mpi.buffer_sizes(world, "parity", timeout=20),
    "recover to start": lambda good: volley.mpi.recover_buffers_start(world, 3, good, timeout=20).wait(),
}
RIGHT = {
    "no array": lambda good: volley.mpi.encode(world, good, timeout=20),
    "a section": lambda good: volley.mpi.decode(world, good, None, timeout=20),
    "a null character": lambda good: volley.mpi.protect(world, ".", 1, timeout=20),
    "sizes": lambda good: volley.mpi.buffer_sizes(world, None, timeout=20),
    "recover to start": lambda good: volley.mpi.recover_buffers_start(world, [good], good.copy(), timeout=20).wait(),
}
RIGHT["out overlaps"] = RIGHT["a number"] = RIGHT["no array"]
RIGHT["parity"] = lambda good: volley.mpi.protect_buffers(world, [good], 1, np.empty(5000, np.uint8), timeout=20)
RIGHT["no list"] = lambda good: volley.mpi.protect_buffers(world, [good], 1, timeout=20)


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_at_one_process_end_the_call_at_all(what: str) -> None:
    good = array(np.uint8, 100)
    with pytest.raises(Exception) as error:
        (WRONG if rank == 1 else RIGHT)[what](good)
    if rank == 1:
        assert isinstance(error.value, (TypeError, ValueError, volley.Refused)) or "ArgumentError" in type(error.value).__name__
    else:
        assert isinstance(error.value, volley.Error) and "rank 1 stopped: " in str(error.value)
    assert volley.mpi.encode(world, good).shape == good.shape


@pytest.mark.parametrize("where", [volley.mpi.empty, lambda comm, *of: np.zeros(*of)])
def test_an_encoding_runs_many_times(where: Callable[..., np.ndarray]) -> None:
    x, y = where(world, (100, 7), np.float32), where(world, 2800, np.uint8)
    assert x.shape == (100, 7) and not x.any()
    encoding = volley.mpi.Encoding(world, x, y)
    for seed in range(3):
        x[:] = np.random.default_rng(1000 * seed + rank).random((100, 7))
        encoding.run()
        assert (volley.mpi.encode(world, x) == y).all()
    for _ in range(2):
        encoding.close()
    with pytest.raises(volley.Refused, match="freed before"):
        encoding.run()
    part = x[3:5]
    want = part.copy()
    del x, encoding
    assert (part == want).all()
    with pytest.raises(volley.Refused, match="give all the same"):
        volley.mpi.empty(world, 3 + (rank == 1))
    assert volley.mpi.empty(world, (0, 5)).shape == (0, 5)


def test_out_at_some_processes() -> None:
    good = array(np.uint8, 100)
    assert (volley.mpi.encode(world, good, np.empty(100, np.uint8) if rank % 2 else None) == volley.mpi.encode(world, good)).all()


def test_communicators_that_none_can_use() -> None:
    good = array(np.uint8, 100)
    half = world.Split(rank % 2, rank)
    inter = half.Create_intercomm(0, world, 1 - rank % 2)
    for comm, words in [(inter, "intercommunicator"), (MPI.COMM_NULL, "MPI_COMM_NULL")]:
        for call in [lambda c: volley.mpi.encode(c, good), lambda c: volley.mpi.protect(c, ".", 1), lambda c: volley.mpi.buffer_sizes(c, None)]:
            with pytest.raises(volley.Refused, match=words):
                call(comm)
    with pytest.raises(TypeError, match="want a communicator"):
        volley.mpi.encode(None, good)
    script = """if True:
        import mpi4py, numpy
        mpi4py.rc.initialize = False
        import volley, volley.mpi
        try:
            volley.mpi.encode(volley.mpi.MPI.COMM_WORLD, numpy.ones(3))
        except volley.Refused as e:
            print(e)
    """
    if rank == 0:
        run = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True)
        assert "MPI is not initialised" in run.stdout, run
    world.barrier()


def test_which_mpi() -> None:
    assert volley.mpi._one_line("MPICH Version:\t4.0.2\nCustom:\t\n\0") == volley.mpi._one_line("MPICH Version:\t4.0.2\nCustom:")


def test_directories(shared: Path) -> None:
    node = shared / f"node.{rank}"
    node.mkdir()
    (node / "state").write_bytes(array(np.float64, 5000 + rank).tobytes())
    was = (node / "state").read_bytes()
    with pytest.raises(volley.Refused, match="not protected"):
        volley.mpi.recover(world, node)
    volley.mpi.protect(world, node, 1)
    request = volley.mpi.protect_start(world, node, 2, digest="xxh3", timeout=20)
    assert world.allreduce(1) == ranks and request.wait() is None  # MPI goes on meanwhile
    world.barrier()
    if rank < 2:
        shutil.rmtree(node)
    world.barrier()
    volley.mpi.recover(world, str(node))
    assert (node / "state").read_bytes() == was
    world.barrier()
    if rank < 3:
        shutil.rmtree(node)
    world.barrier()
    with pytest.raises(volley.Refused, match="nodes are lost") as refused:
        volley.mpi.recover(world, node)
    assert refused.value.code == 2 and refused.value.verb == "recover"
    assert node.exists() == (rank >= 3)


def test_snapshots(shared: Path) -> None:
    """A job of all processes saves, one of fewer restarts, in another order, saves, and one of all goes on."""
    root = shared / f"root.{rank}"
    with pytest.raises(volley.NothingProtected):
        volley.mpi.recover(world, root, step=volley.mpi.LATEST)

    def save(comm: MPI.Comm, step: int, tolerate: int, retain: int = 0) -> None:
        (volley.mpi.step_path(root, step) / f"state.{rank}").write_text(f"{step} of {rank}")
        if retain:
            volley.mpi.protect_start(comm, root, tolerate, step=step, retain=retain).wait()
        else:
            assert volley.mpi.protect(comm, root, tolerate, step=step) == step

    def files(step: int) -> list[str]:
        mine = [p.read_text() for directory in (root, *root.glob(".spare-*")) for p in (directory / f"step-{step}").glob("state.*")]
        return sorted(text for of in world.allgather(mine) for text in of)

    save(world, 7, 1)
    world.barrier()
    if rank == ranks - 1:
        shutil.rmtree(root)
    fewer = world.Split(int(rank == ranks - 1), -rank)
    if rank < ranks - 1:
        report = volley.mpi.status(fewer, root, step=volley.mpi.LATEST)
        assert (report.step, report.nodes, report.lost, report.whole, report.recoverable) == (7, ranks, 1, 0, 1)
        assert volley.mpi.recover(fewer, root, step=volley.mpi.LATEST) == 7
        assert volley.mpi.verify(fewer, root, step=7).whole
    assert files(7) == [f"7 of {r}" for r in range(ranks)]
    if rank < ranks - 1:
        save(fewer, 8, 1, 1)
        assert [p.name for p in root.iterdir()] == ["step-8"]
    world.barrier()
    assert volley.mpi.recover(world, root, step=volley.mpi.LATEST) == 8
    assert files(8) == [f"8 of {r}" for r in range(ranks - 1)]
    with pytest.raises(volley.Refused) as another:  # a number of directories
        volley.mpi.recover(world, root / "step-8")
    assert not isinstance(another.value, volley.NothingProtected)
    if rank < ranks - 1:
        volley.mpi.unprotect(fewer, root / "step-8")
        assert not (root / "step-8" / ".volley").exists()
    with pytest.raises((TypeError, volley.Error), match="tolerate=1.5: want a whole number"):
        volley.mpi.protect(world, root, 1.5 if rank == 0 else 1, step=8)  # type: ignore[arg-type]


def test_signals_stay_those_of_python() -> None:
    x = array(np.uint8, 100_000)
    seen = []
    earlier = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    stop = threading.Event()
    sent = []

    def send() -> None:
        while not stop.wait(0.001):
            os.kill(os.getpid(), signal.SIGUSR1)
            sent.append(1)

    sender = threading.Thread(target=send)
    sender.start()
    first = volley.mpi.encode(world, x)
    for _ in range(50):
        assert (volley.mpi.encode(world, x) == first).all()
    stop.set()
    sender.join()
    signal.signal(signal.SIGUSR1, earlier)
    assert sent and seen
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(BrokenPipeError):  # Python ignores SIGPIPE
        os.write(writer, b"x")
    os.close(writer)


def test_a_fork_is_refused_the_library() -> None:
    x = array(np.uint8, 10)
    volley.mpi.encode(world, x)
    child = os.fork()
    if child == 0:
        try:
            volley.mpi.encode(world, x, np.empty(10, np.uint8))
            os._exit(1)
        except RuntimeError as e:
            os._exit(0 if "forked" in str(e) else 2)
        finally:
            os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    volley.mpi.encode(world, x)
    assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout == b"1\n"


def test_which_library(tmp_path: Path) -> None:
    script = "import mpi4py; mpi4py.rc.initialize = False; import volley.mpi; volley.mpi._library()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(library: object) -> str:
        return subprocess.run([sys.executable, "-c", script], env=environment | {"VOLLEY_LIBRARY": str(library)}, capture_output=True, text=True).stderr

    if rank == 0:
        assert run(os.environ["VOLLEY_LIBRARY"]) == ""
        assert "/no/such: cannot open" in run("/no/such") and "make install" in run("/no/such")
        assert "no libvolley" in run("libm.so.6")
        (tmp_path / "other.c").write_text('const char *volley_error(void) { return ""; } const char *volley_version(void) { return "9.9"; }')
        other = tmp_path / "libother.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", other, tmp_path / "other.c"], check=True)
        assert f"is libvolley 9.9, and this package {volley.__version__}" in run(other)
    world.barrier()


def members(text: str, begin: str, end: str) -> list:
    """The names of the members of a struct in C or of a type in Fortran."""
    body = re.sub(r"/\*.*?\*/|!.*|=[^,\n]*", "", text[text.index(begin) + len(begin) : text.index(end, text.index(begin))], flags=re.S)
    return re.findall(r"(\w+)\s*(?=[;,]|\n)", body)


def test_options_are_those_of_the_library() -> None:
    library = Path(__file__).resolve().parents[2] / "cmd" / "libvolley"
    header, module = (library / "volley.h").read_text(), re.sub(r" !.*", "", (library / "fortran" / "volley.f90").read_text())
    for struct, kind, here in [
        ("volley_options", "options", volley.mpi._Options),
        ("volley_group_options", "group_options", volley.mpi._GroupOptions),
        ("volley_buffer", "volley_buffer", volley.mpi._Buffer),
        ("volley_report", "volley_report", volley.mpi.Report),
    ]:
        want = members(header, f"typedef struct {struct} {{", "}")
        assert [name for name, _ in here._fields_] == want and len(want) > 1
        assert members(module, f"type, bind(c) :: {kind}\n", "end type") == want


def arrays_of(seed: int) -> list:
    """Arrays of other lengths at each rank: rank 1 has none with bytes."""
    return [] if rank == 1 else [array(np.float64, (1000 * rank + 10, 3), seed), array(np.uint8, 0), array(np.int16, (7, rank + 1), seed)]


@pytest.mark.parametrize("begun", [False, True], ids=["calls", "requests"])
def test_lost_arrays_come_back(begun: bool) -> None:
    arrays = arrays_of(2)
    was = [a.tobytes() for a in arrays]
    for a in arrays:
        a.flags.writeable = False
    if begun:
        request = volley.mpi.protect_buffers_start(world, arrays, 2)
        while not request.test():
            pass
        parity = request.wait()
        assert request.test() and request.wait() is parity
    else:
        parity = volley.mpi.protect_buffers(world, arrays, 2, timeout=20)
    assert parity.nbytes == volley.mpi.parity_bytes(world, arrays, 2)
    before = parity.copy()
    lost = rank in (0, 2)
    sizes, room = volley.mpi.buffer_sizes(world, None if lost else parity)
    assert (sizes, room) == ([len(w) for w in was], parity.nbytes)
    back = [np.full(n, 7, np.uint8) for n in sizes] if lost else [a.copy() for a in arrays]
    if lost:
        parity = np.zeros(room, np.uint8)
    if begun:
        assert volley.mpi.recover_buffers_start(world, back, parity, lost).wait() is None
    else:
        volley.mpi.recover_buffers(world, back, parity, lost)
    assert [b.tobytes() for b in back] == was
    assert not (parity != before).any(), np.nonzero(parity != before)


def test_errors_of_arrays() -> None:
    arrays = arrays_of(4)
    parity = volley.mpi.protect_buffers(world, arrays, 1)
    untouched = [a.copy() for a in arrays]
    with pytest.raises(volley.Refused, match="lost") as refused:
        volley.mpi.recover_buffers(world, untouched, parity.copy(), lost=rank < 2)
    assert refused.value.verb == "recover_buffers"
    assert all(a.tobytes() == b.tobytes() for a, b in zip(arrays, untouched))
    with pytest.raises(volley.Refused):
        volley.mpi.protect_buffers(world, arrays, ranks)
    with pytest.raises(volley.Error, match="room for 3 bytes of parity"):
        volley.mpi.protect_buffers(world, arrays, 1, np.empty(3, np.uint8))
    # Of a generator the second look would find nothing, and protect nothing.
    for call in (volley.mpi.protect_buffers, volley.mpi.protect_buffers_start, volley.mpi.parity_bytes):
        with pytest.raises(TypeError, match="arrays: generator: want a list of arrays"):
            call(world, (a for a in arrays), 1)
    with pytest.raises(TypeError, match="arrays: generator: want a list of arrays"):
        volley.mpi.recover_buffers(world, (a for a in arrays), parity)
    fixed = np.ones(3)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match=r"arrays\[0\]: read-only"):
        volley.mpi.recover_buffers(world, [fixed], parity)
    with pytest.raises(ValueError, match="parity: read-only"):
        volley.mpi.protect_buffers(world, [fixed], 1, fixed)


def test_a_process_waits_for_its_requests() -> None:
    script = """if True:
        import numpy, volley.mpi
        from mpi4py import MPI
        volley.mpi.protect_buffers_start(MPI.COMM_WORLD, [numpy.ones(1_000_000)], 1)
        volley.mpi.protect_buffers_start(MPI.COMM_WORLD, [numpy.ones(1_000_000)], 1)
        print("ends")
    """
    if rank == 0:
        alone = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_"))}
        alone |= {"PYTHONPATH": os.pathsep.join(sys.path), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        run = subprocess.run(["mpirun", "--oversubscribe", "-n", "3", sys.executable, "-c", script], env=alone, capture_output=True, text=True)
        assert (run.returncode, run.stdout.count("ends"), run.stderr) == (0, 3, "")
    world.barrier()


def others(of: np.ndarray) -> dict:
    """Returns what has the same bytes and is no array of NumPy."""
    import array as arrays

    made = {"bytearray": bytearray(of), "memoryview": memoryview(bytearray(of)), "array": arrays.array("B", of.tobytes())}
    try:
        import torch
    except ImportError:
        return made
    made["tensor"] = torch.tensor(of)
    made["bfloat16"] = torch.tensor(of).view(torch.bfloat16)
    made["pieces"] = torch.tensor(np.concatenate([of, of]))[len(of) :].view(-1, 2, 4)
    return made


def test_other_memory() -> None:
    """Buffers and tensors do as arrays do, where they are."""
    packet = array(np.uint8, 800)
    coded = volley.mpi.encode(world, packet)
    for kind, other in others(packet).items():
        out = bytearray(800)
        assert volley.mpi.encode(world, other, out) is out and out == coded.tobytes(), kind
        assert volley.mpi.encode(world, other).tobytes() == coded.tobytes(), kind
        parity = volley.mpi.protect_buffers(world, [other, packet], 1)
        lost = rank == 1
        back = others(np.zeros(800, np.uint8))[kind] if lost else other
        volley.mpi.recover_buffers(world, [back, packet], parity, lost)
        address, n = volley.mpi._memory(kind, back, True)
        import ctypes

        assert ctypes.string_at(address, n) == packet.tobytes(), kind
    assert volley.mpi.encode(world, bytes(packet)).tobytes() == coded.tobytes()


def test_other_memory_that_will_not_do() -> None:
    def refused(kind: type, text: str, of: object, write: bool = False) -> None:
        with pytest.raises(kind, match=text):
            volley.mpi._memory("x", of, write)

    refused(TypeError, "x: str: want a NumPy array, a tensor", "text")
    refused(ValueError, "x: read-only", b"bytes", True)
    refused(ValueError, "x: not C-contiguous", memoryview(bytearray(9))[::2])
    assert volley.mpi._memory("x", bytearray(), True)[1] == 0
    torch = pytest.importorskip("torch")
    refused(ValueError, "x: not C-contiguous", torch.zeros(4, 4).t())
    refused(ValueError, "x: .*gradient", torch.zeros(4, requires_grad=True))
    assert volley.mpi._memory("x", torch.zeros(0), True)[1] == 0
    with pytest.raises(TypeError, match="want a list of arrays"):
        volley.mpi.protect_buffers(world, torch.zeros(4), 1)


class Exported:
    """Exports an array by DLPack with versions, as NumPy 2 does: with flags, and a shape that the test sets."""

    def __init__(self, address: int, flags: int = 0, device: int = 1, major: int = 1, bits: int = 8) -> None:
        import ctypes

        from volley import _memory

        self.device = device
        self.shape = (ctypes.c_int64 * 1)(800)
        self.it = _memory._Versioned(major, 0, None, None, flags, _memory._Tensor(address - 8, device, 0, 1, 1, bits, 1, self.shape, None, 8))

    def __dlpack_device__(self) -> tuple:
        return self.device, 0

    def __dlpack__(self, max_version: object) -> object:
        import ctypes

        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.it), b"dltensor_versioned", None)


def test_dlpack_with_versions() -> None:
    packet = array(np.uint8, 800)
    at = packet.ctypes.data
    assert volley.mpi._memory("x", Exported(at), True) == (at, 800)
    assert volley.mpi._memory("x", Exported(at, 1), False) == (at, 800)
    for of, text in (Exported(at, 1), "read-only"), (Exported(at, device=2), "device"), (Exported(at, major=2), "version 2"), (Exported(at, bits=4), "4 bits"):
        with pytest.raises(ValueError, match=text):
            volley.mpi._memory("x", of, True)
