"""The verbs, run by the binary that $VOLLEY names."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import volley

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    """Five directories with two files each, one of a name that is no UTF-8."""
    dirs = [tmp_path / f"node.{n}" for n in range(5)]
    for n, d in enumerate(dirs):
        d.mkdir()
        (d / "data").write_bytes(os.urandom(100_000 + 1000 * n))
        (d / os.fsdecode(b"\xff-name")).write_bytes(b"small")
    return dirs


def contents(dirs: list[Path]) -> list[dict[str, bytes]]:
    return [{f.name: f.read_bytes() for f in d.iterdir() if f.is_file()} for d in dirs]


def test_lost_nodes_come_back(nodes: list[Path]) -> None:
    was = contents(nodes)
    planned = volley.protect(nodes, 2, dry_run=True)
    assert planned.parity_bytes > 0 and planned.cost.stored_bytes == planned.parity_bytes and planned.cost.rounds > 0
    assert not (nodes[0] / ".volley").exists()
    assert not volley.status(nodes).protected
    done = volley.protect(nodes, tolerate=2, digest="xxh3")
    assert (done.nodes, done.tolerate, done.digest, done.generation, done.files) == (5, 2, "xxh3", 1, 10)
    assert done.places == [str(d) for d in nodes] and done.traffic.most_sent > 0
    shutil.rmtree(nodes[1])
    shutil.rmtree(nodes[3])
    seen = volley.verify(nodes)
    assert not seen.whole and seen.may_lose == 0 and seen.since is not None
    assert [n.status for n in seen.nodes] == ["whole", "lost", "whole", "lost", "whole"]
    assert volley.recover(nodes, dry_run=True).files == 0 and not nodes[1].exists()
    assert volley.recover(nodes).files == 4
    assert contents(nodes) == was
    assert volley.verify(nodes).whole and volley.status(nodes).may_lose == 2
    with pytest.raises(volley.Refused, match="node.4"):
        (nodes[4] / ".volley").rename(nodes[4] / "away")
        volley.unprotect(nodes)
    (nodes[4] / "away").rename(nodes[4] / ".volley")
    assert volley.unprotect(nodes, dry_run=True).parity_bytes > 0 and volley.unprotect(nodes).generation == 1
    assert contents(nodes) == was and not any((d / ".volley").exists() for d in nodes)


def test_findings(nodes: list[Path]) -> None:
    volley.protect(nodes, 1)
    name = os.fsdecode(b"\xff-name")
    (nodes[2] / name).unlink()
    (found,) = volley.status(nodes).nodes[2].findings
    assert (found.path, found.what) == (name, "deleted")
    (nodes[2] / "data").write_bytes(b"another")
    os.utime(nodes[2] / "data", (1, 1))
    assert volley.recover(nodes).deleted == [str(nodes[2] / name)] and not (nodes[2] / name).exists()
    report = volley.recover(nodes, revert="deleted")
    assert report.kept == [str(nodes[2] / "data")] and (nodes[2] / name).read_bytes() == b"small"
    assert volley.recover(nodes, file="data", revert=["changed"], dry_run=True).reverts == report.kept
    some = volley.recover(nodes, file=["/data", "!none"])
    assert (some.matched, some.files, some.kept) == (len(nodes), 0, report.kept)
    assert volley.recover(nodes, revert=["changed"]).replaced == [str(nodes[2] / ".volley/replaced/1/data")]


def words(verb: str, *arguments: object) -> str:
    """What the command line says of an error."""
    command = [volley.binary(), verb, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True).stderr.strip().removeprefix("volley: ")


def test_errors_are_those_of_the_command_line(nodes: list[Path]) -> None:
    volley.protect(nodes, 1)
    shutil.rmtree(nodes[0])
    shutil.rmtree(nodes[1])
    with pytest.raises(volley.Refused) as refused:
        volley.recover(nodes)
    assert str(refused.value) == words("recover", *nodes) and refused.value.code == 2
    assert "2 nodes are lost" in str(refused.value)
    with pytest.raises(volley.Refused, match="--no-such-flag"):
        volley.verify(nodes, flags=["--no-such-flag"])


def test_busy(nodes: list[Path]) -> None:
    volley.protect(nodes, 1)
    with open(nodes[3] / ".volley" / "lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(volley.RunFailed, match="busy") as failed:
            volley.protect(nodes, 1)
        assert failed.value.code == 1 and str(nodes[3]) in str(failed.value)
    volley.protect(nodes, 1)


def test_not_everything_comes_back(nodes: list[Path]) -> None:
    volley.protect(nodes, 1)
    (nodes[2] / "data").unlink()
    (nodes[2] / "data").mkdir()
    (nodes[2] / "data" / "mine").write_text("in the way")
    with pytest.raises(volley.NotWhole) as left:
        volley.recover(nodes, revert=["changed"])
    (report,) = left.value.reports
    assert left.value.code == 3 and report.unrecovered and str(report.unrecovered[0]) in str(left.value)


def test_key(nodes: list[Path], tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text("0123456789abcdef0123456789abcdef")
    volley.protect(nodes, 1, key=key)
    assert volley.verify(nodes, key=key).whole
    with pytest.raises(volley.Refused, match="key"):
        volley.verify(nodes)


def test_progress(nodes: list[Path]) -> None:
    seen: list[volley.Progress] = []
    often = ["--progress", "1ns"]
    volley.protect(nodes, 1, progress=seen.append, flags=often)
    assert seen[-1].fraction == 1 and seen[-1].total > 500_000 and [p.done for p in seen] == sorted(p.done for p in seen)
    shutil.rmtree(nodes[1])
    for verb in (volley.recover, volley.verify):
        seen.clear()
        verb(nodes, progress=seen.append, flags=often)
        assert seen[-1].fraction == 1 and all(p.done <= p.total for p in seen)
    assert volley.Progress(0, 0).fraction == 0

    def fail(at: volley.Progress) -> None:
        raise KeyError(at.total)

    (nodes[0] / "more").write_bytes(os.urandom(1_000_000))  # or there is nothing to tell
    with pytest.raises(KeyError):
        volley.protect(nodes, 1, progress=fail, flags=often)
    assert volley.verify(nodes).whole and volley.verify(nodes).generation in (1, 2)


def test_sets(nodes: list[Path], tmp_path: Path) -> None:
    four = nodes[:4]
    first, second = volley.in_sets("protect", four, 2, tolerate=1)
    assert (first.set, second.set, first.sets) == (0, 1, 2) and first.error == ""
    assert isinstance(first.report, volley.ProtectReport) and first.report.nodes == 2
    was = contents(four)
    shutil.rmtree(four[0])
    shutil.rmtree(four[3])
    seen = volley.in_sets("status", four, 2)
    assert [r.report.whole for r in seen if isinstance(r.report, volley.VerifyReport)] == [False, False]
    volley.in_sets("recover", four, 2)
    assert contents(four) == was
    with pytest.raises(ValueError, match="encode"):
        volley.in_sets("encode", four, 2)


def test_snapshots(tmp_path: Path) -> None:
    roots = [tmp_path / f"root.{n}" for n in range(3)]
    assert volley.snapshots(roots).snapshots == []
    for step in 10, 20, 30:
        for root in roots:
            (root / f"step-{step}").mkdir(parents=True)
            (root / f"step-{step}" / "data").write_text(f"{step} of {root.name}")
        done = volley.protect(roots, 1, step=step, retain=2)
        assert done.step == step
    assert done.removed == [10] and not (roots[0] / "step-10").exists()
    (roots[0] / "step-40").mkdir()
    shutil.rmtree(roots[1])
    seen = volley.snapshots(roots)
    assert [s.step for s in seen.snapshots] == [40, 30, 20] and seen.latest == 30
    assert seen.snapshots[1].state == "recoverable" and seen.snapshots[1].holders == [0, 2]
    assert seen.snapshots[1].protected_at is not None and seen.snapshots[0].state == "incomplete"
    assert not volley.status(roots, step="latest").whole
    assert volley.recover(roots, step="latest").step == 30
    assert (roots[1] / "step-30" / "data").read_text() == "30 of root.1"
    assert not (roots[0] / "step-40").exists() and not (roots[1] / "step-20").exists()
    assert volley.verify(roots, step="latest").step == 30 and volley.recover(roots, step=20).files > 0
    with pytest.raises(volley.Refused, match="50"):
        volley.protect(roots, 1, step=50)


def test_group_file(nodes: list[Path], tmp_path: Path) -> None:
    group = tmp_path / "group.yaml"
    group.write_text("tolerate: 2\nmembers:\n" + "".join(f"- dir: {node}\n" for node in nodes))
    group.chmod(0o600)
    assert volley.protect(group=group).tolerate == 2
    was = contents(nodes)
    shutil.rmtree(nodes[2])
    assert volley.status(group=group).may_lose == 1
    assert volley.recover(group=group).files == 2 and contents(nodes) == was
    assert volley.verify(group=group).whole
    assert volley.protect(group=group, tolerate=1, dry_run=True).tolerate == 1  # the call has the last word
    with pytest.raises(volley.Refused, match="it has the directories"):
        volley.verify(nodes, group=group)
    volley.unprotect(group=group)
    group.write_text("group-size: 3\n" + group.read_text())
    assert len(volley.in_sets("protect", group=group, tolerate=1)) == 2
    with pytest.raises(ValueError, match="in_sets"):
        volley.verify(group=group)


def test_a_path_is_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dirs = [Path("a:x"), Path("b:x"), Path("--c")]
    for d in dirs:
        d.mkdir()
        (d / "f").write_text(str(d))
    assert volley.protect(dirs, 1).places == [str(tmp_path / d) for d in dirs]
    with pytest.raises(TypeError, match="list of all nodes"):
        volley.protect("a", 1)


def program(path: Path, text: str) -> str:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def test_which_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = program(tmp_path / "named", "echo hello")
    monkeypatch.setenv("VOLLEY", named)
    assert volley.binary() == named
    with pytest.raises(volley.Error, match="no JSON: is it Volley"):
        volley.status(["a", "b"])
    monkeypatch.setenv("VOLLEY", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="VOLLEY="):
        volley.binary()
    monkeypatch.delenv("VOLLEY")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="no binary volley"):
        volley.binary()
    in_path = program(tmp_path / "volley", "exit 1")
    assert volley.binary() == in_path
    with pytest.raises(volley.RunFailed, match="ended with exit code 1 and said nothing"):
        volley.verify(["a", "b"])


@pytest.mark.parametrize("starts", [True, False], ids=["as it starts", "while it runs"])
def test_interrupt_ends_the_run(starts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready, ended = tmp_path / "ready", tmp_path / "ended"
    os.mkfifo(ready)
    monkeypatch.setenv("VOLLEY", program(tmp_path / "volley", f"trap 'touch {ended}; exit 1' TERM; echo > {ready}; while :; do sleep 0.01; done"))

    def interrupt() -> None:
        ready.read_text()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            interrupt()

    if starts:
        monkeypatch.setattr(subprocess, "Popen", Interrupted)
    else:
        threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        volley.protect(["a", "b"], 1)
    assert ended.exists()


def test_warnings_are_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    log = r"""echo '{"level":"WARN","msg":"slow"}' >&2; echo '{"level":"INFO","msg":"no"}' >&2; echo plain >&2; exit 2"""
    monkeypatch.setenv("VOLLEY", program(tmp_path / "volley", log))
    with pytest.raises(volley.Refused, match="^plain$"):
        volley.verify(["a", "b"])
    assert [r.getMessage() for r in caplog.records] == ["slow"]


def test_version() -> None:
    text = (REPOSITORY / "version.go").read_text()
    assert re.findall(r'Version = "(.*)"', text) == [volley.__version__]


@pytest.mark.parametrize("carried", [True, False], ids=["wheel", "sources"])
def test_install(carried: bool, tmp_path: Path, nodes: list[Path]) -> None:
    if carried:
        subprocess.run(["make", "-s", "-C", REPOSITORY, "wheel", f"PYTHON={sys.executable}", f"WHEEL={tmp_path}"], check=True)
        (what,) = tmp_path.glob("volley-*-py3-none-manylinux2014_*.whl")
    else:
        subprocess.run(["make", "-s", "-C", REPOSITORY, "sdist", f"PYTHON={sys.executable}", f"WHEEL={tmp_path}"], check=True)
        (what,) = tmp_path.glob("volley-*.tar.gz")
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", venv], check=True)
    python = venv / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation", what], check=True)
    environment = {k: v for k, v in os.environ.items() if k not in ("VOLLEY", "PYTHONPATH")} | {"PATH": "/usr/bin:/bin"}
    commit = subprocess.run(["git", "-C", REPOSITORY, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    known = subprocess.run([python, "-I", "-c", "import volley; print(volley.__commit__)"], env=environment, cwd=tmp_path, capture_output=True, text=True).stdout.strip()
    assert known.split(".")[0] == commit
    script = "import sys, volley; print(volley.protect(sys.argv[1:], 1).nodes)"
    run = subprocess.run([python, "-I", "-c", script, *nodes], env=environment, cwd=tmp_path, capture_output=True, text=True)
    if carried:
        assert run.stdout == "5\n", run.stderr
    else:
        assert run.returncode and "no binary volley" in run.stderr
