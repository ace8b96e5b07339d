"""Tensors in memory with parity: four ranks under torch.distributed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import ranks  # noqa: E402
import volley.torch  # noqa: E402

RANKS = 4


def tensors(rank: int, step: int = 1) -> dict[str, Any]:
    """Returns tensors of several types and lengths, some of them in shared memory."""
    random = torch.Generator().manual_seed(100 * step + rank)
    weights = torch.rand(30_000 + 1000 * rank, generator=random)
    return {
        "weights": weights.share_memory_(),
        "part": torch.rand(5000, generator=random).share_memory_()[rank + 1 : 4000],
        "moments": torch.rand(70, 50, generator=random).t(),  # not contiguous
        "half": torch.rand(999, generator=random).to(torch.bfloat16),
        "mask": torch.rand(77, generator=random) > 0.5,
        "parameter": torch.nn.Parameter(torch.rand(10, generator=random)),
        "step": torch.tensor(step),
        "none": torch.empty(0),
    }


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def blank(like: dict[str, Any]) -> dict[str, Any]:
    """Returns tensors of the same lengths with something else in them, as a new process has them."""
    with torch.no_grad():
        return {name: torch.full_like(t, 1) for name, t in like.items()}


def lose(rank: int, lost: list[int]) -> list[Any]:
    mine = tensors(rank)
    room = volley.torch.parity_bytes(mine, 2)
    parity = volley.torch.protect(mine, 2)
    before = parity.clone()
    bytes_, parity_bytes = volley.torch.sizes(None if rank in lost else parity)
    want = [mine[name].numel() * mine[name].element_size() for name in sorted(mine)]
    if rank in lost:
        mine, parity = blank(mine), torch.zeros(parity_bytes, dtype=torch.uint8)
    elif rank == 0:
        mine["weights"][7] = 0  # damaged
    volley.torch.recover(mine, parity, rank in lost)
    return [same(mine, tensors(rank)), torch.equal(parity, before), bytes_ == want, parity_bytes == room == parity.numel()]


@pytest.mark.parametrize("lost", [[], [3], [2, 3]])
def test_lost_tensors_come_back(lost: list[int]) -> None:
    if len(lost) == 2:  # and no other rank may be damaged then
        errors = ranks.run(lose, RANKS, lost)
        assert all(isinstance(e, volley.Refused) and "nothing was written" in str(e) for e in errors), errors
        lost = [0, 3]
    assert ranks.run(lose, RANKS, lost) == [[True] * 4] * RANKS


def again(rank: int) -> list[Any]:
    """Protects into the same room, of both kinds of memory, and loses too many."""
    first, second = [torch.full((100,), rank)], [torch.full((100,), rank + 50)]
    parity = volley.torch.protect(first, 1)
    place = parity.data_ptr()
    private = parity.clone()
    got = [volley.torch.protect(second, 1, parity).data_ptr() == place, volley.torch.protect(second, 1, private) is private]
    for p in parity, private:
        mine = [torch.zeros(100, dtype=torch.int64)] if rank == 1 else second
        volley.torch.recover(mine, p, rank == 1)
        got.append(torch.equal(mine[0], second[0]))
    before = [t.clone() for t in second]
    try:
        volley.torch.recover(second, parity, rank < 2)
    except volley.Refused as e:
        got += [e.code, torch.equal(before[0], second[0])]
    return got


def test_same_room() -> None:
    assert ranks.run(again, RANKS) == [[True, True, True, True, 2, True]] * RANKS


def wrong(rank: int) -> list[str]:
    good = [torch.zeros(10)]
    texts = []

    def expect(kind: type[Exception], call: Any) -> None:
        try:
            call()
            texts.append("no error")
        except kind as e:
            texts.append(str(e))

    def one(bad: Any, other: Any) -> Any:
        return bad if rank == 2 else other

    protect = volley.torch.protect
    parity = protect(good, 1)
    expect(ValueError, lambda: protect(one(torch.zeros(4), good), 1))
    expect(ValueError, lambda: protect(one({"a": torch.zeros(4, device="meta")}, good), 1))
    expect(ValueError, lambda: protect(good, one(2, 1)))
    expect(ValueError, lambda: protect(good, 4))
    expect(ValueError, lambda: protect(good, 1, one(None, parity)))
    expect(ValueError, lambda: volley.torch.recover(good, one(None, parity)))
    expect(volley.Refused, lambda: volley.torch.recover(one([torch.zeros(9)], good), parity))
    expect(volley.Refused, lambda: protect(good, 1, one(parity[:600], parity.clone())))
    expect(volley.Refused, lambda: protect(good, 1, digest="md5"))
    return texts


def test_wrong_arguments() -> None:
    everyone = ranks.run(wrong, RANKS)
    assert everyone == [everyone[0]] * RANKS, everyone
    for text, want in zip(
        everyone[0],
        [
            "rank 2: tensors: Tensor: want a list or a dict",
            "rank 2: tensors['a']: on meta",
            "rank 0 has tolerate=1, and rank 2 tolerate=2",
            "to lose 4 ranks takes 5 or more, and there are 4",
            "rank 0 has parity=True, and rank 2 parity=False",
            "rank 2: parity: NoneType",
            "rank 2: buffer 0 has 36 bytes, and had 40",
            "rank 2: room for 600 bytes of parity",
            "md5",
        ],
    ):
        assert want in text


def mapped(path: Path, dtype: Any, size: int) -> Any:
    return torch.from_file(str(path), shared=True, size=size, dtype=dtype)


def no_copies(rank: int, root: Path) -> list[Any]:
    """Says of kinds of memory whether a child maps them as they are."""
    from volley import _buffers

    file = mapped(root / f"file{rank}", torch.uint8, 10_000)
    given = volley.torch.protect([file], 1)
    found = []
    for t in file[5000:], given, torch.zeros(9).share_memory_(), torch.zeros(9):
        memory = _buffers.Memory()
        span = memory.add(t, False)
        found.append(span["fd"] >= 0)
        memory.close()
    return found


def test_shared_memory_is_not_copied(tmp_path: Path) -> None:
    assert ranks.run(no_copies, RANKS, tmp_path) == [[True, True, True, False]] * RANKS
