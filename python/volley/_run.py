"""Finds and runs the binary."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Optional, Sequence, Union

log = logging.getLogger("volley")

Dir = Union[str, "os.PathLike[str]"]


class Progress(NamedTuple):
    """How far a run is, in bytes. `total` may grow: `recover` finds out what is damaged while it reads."""

    done: int
    total: int

    @property
    def fraction(self) -> float:
        """From 0 to 1; 0 where there is nothing to do, or nothing is known yet."""
        return self.done / self.total if self.total else 0.0


Heard = Optional[Callable[[Progress], None]]
OFTEN = ["--progress", "500ms"]  # how often the binary says how far it is


class Error(Exception):
    """A run of the binary that failed.

    The text is the binary's. `code` is its exit code, `verb` what it was to do, and `reports` what it printed
    before it failed: nothing, a report, or one for each set.
    """

    def __init__(self, text: str, code: int, verb: str, reports: Sequence[Any] = ()) -> None:
        super().__init__(text, code, verb, list(reports))  # all of it, for pickle
        self.code, self.verb, self.reports = code, verb, list(reports)

    def __str__(self) -> str:
        return str(self.args[0])


class RunFailed(Error):
    """The run failed: a disk, a peer, or another run has the lock (exit code 1). The group is as it was."""


class Refused(Error):
    """The request cannot be done (exit code 2): wrong directories, or more nodes lost than tolerated."""


class NothingProtected(Refused):
    """Nothing is there to recover (exit code 5), as before the first run: what cannot be used is `Refused` or `NotWhole`."""


class NotWhole(Error):
    """Something is lost or damaged (exit code 3): of `recover`, not everything is back."""


class Cancelled(Error):
    """The run was ended by `Job.cancel` or a signal (exit code 130). The group is as it was."""


def binary() -> str:
    """Returns the path of the binary. FileNotFoundError: there is none."""
    named = os.environ.get("VOLLEY")
    if named:
        found = shutil.which(named)
        if not found:
            raise FileNotFoundError(f"VOLLEY={named}: no program: it has to name the binary volley")
        return found
    carried = Path(__file__).with_name("bin") / "volley"
    found = shutil.which(str(carried)) or shutil.which("volley")
    if not found:
        raise FileNotFoundError("no binary volley: put it in the PATH, name it in VOLLEY, or install the wheel that carries it")
    return found


def places(dirs: Iterable[Dir]) -> list[str]:
    """Returns directories as arguments. A string may be HOST:DIR, a path object is of this machine."""
    if isinstance(dirs, (str, bytes, os.PathLike)):
        raise TypeError(f"{dirs!r} is one directory: give a list of all nodes")
    return [d if isinstance(d, str) else os.path.abspath(d) for d in dirs]


def failure(code: int, text: str, verb: str, reports: Sequence[Any] = ()) -> Error:
    """Returns the exception of an exit code."""
    kind = {1: RunFailed, 2: Refused, 3: NotWhole, 5: NothingProtected, 130: Cancelled}.get(code, Error)
    return kind(text or f"volley {verb} ended with exit code {code} and said nothing", code, verb, reports)


def said(lines: Iterable[str], progress: Heard = None) -> Iterator[str]:
    """Returns the errors in a log in JSON. Warnings go to the logger volley; other lines are errors, too."""
    for line in lines:
        try:
            record = json.loads(line)
            level, text = record["level"], record["msg"]
            at = Progress(record["done"], record["total"]) if text == "progress" else None
        except (ValueError, KeyError, TypeError):
            level, text, at = "ERROR", line.strip(), None
        if at and progress:
            progress(at)
        if level == "ERROR" and text:
            yield text
        elif level == "WARN":
            log.warning("%s", text)


def documents(text: str) -> list[Any]:
    """Returns the JSON documents of a text."""
    found, decoder, at = [], json.JSONDecoder(), 0
    text = text.strip()
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        found.append(value)
    return found


class Deferred:
    """Defers interrupts (Ctrl-C): one that comes while a process is started would lose it, and it would go on."""

    def __enter__(self) -> Deferred:
        self._came = False
        handler = signal.getsignal(signal.SIGINT)
        # Only the main thread is interrupted, and has a handler to defer.
        self._handler = handler if callable(handler) and threading.current_thread() is threading.main_thread() else None
        if self._handler:
            signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: Optional[FrameType]) -> None:
        self._came = True

    def over(self) -> None:
        """Lets interrupts through from now on, also one that has come."""
        if self._handler:
            signal.signal(signal.SIGINT, self._handler)
            self._handler = None
            if self._came:
                signal.raise_signal(signal.SIGINT)

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.over()


def run(verb: str, flags: Sequence[str], dirs: Iterable[Dir], progress: Heard = None) -> tuple[list[Any], int, str]:
    """Runs a verb to its end, and returns what it printed, its exit code and its errors.

    If Python is interrupted meanwhile, or `progress` raises an error, the run ends as by Ctrl-C: the group stays as
    protected as it was.
    """
    command = [binary(), verb, "--json", "--log-format", "json", *(OFTEN if progress else []), *flags, "--", *places(dirs)]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as out, Deferred() as interrupts, subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, encoding="utf-8", errors="replace"
    ) as child:
        assert child.stderr
        try:
            interrupts.over()
            errors = "\n".join(said(child.stderr, progress))
            child.wait()
        except BaseException:
            child.terminate()
            child.communicate()
            raise
        out.seek(0)
        printed = out.read()
    try:
        return documents(printed), child.returncode, errors
    except ValueError:
        raise failure(child.returncode, errors or f"{command[0]} printed no JSON: is it Volley?", verb) from None
