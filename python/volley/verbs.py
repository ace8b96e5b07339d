"""The verbs for groups of nodes."""

from __future__ import annotations

import os
from typing import Any, Iterable, Literal, Sequence

from ._run import Dir, Heard, failure, run
from .reports import ProtectReport, RecoverReport, SetReport, SnapshotsReport, UnprotectReport, VerifyReport, read

_REPORTS: dict[str, Any] = {
    "protect": ProtectReport,
    "verify": VerifyReport,
    "recover": RecoverReport,
    "status": VerifyReport,
    "unprotect": UnprotectReport,
    "snapshots": SnapshotsReport,
}
__all__ = [
    "in_sets",
    "protect",
    "recover",
    "snapshots",
    "status",
    "unprotect",
    "verify",
]

_REFUSED = 2  # exit code
_NOT_WHOLE = 3  # exit code


def _flags(options: dict[str, Any], more: Sequence[str]) -> list[str]:
    """Returns the flags of options that are set: a name with its value, or by itself where that is True."""
    found = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            found.append(flag)
        elif value is not None and value is not False:
            values = value if isinstance(value, (list, tuple)) else [value]
            found += [f"{flag}={os.fspath(x) if isinstance(x, os.PathLike) else x}" for x in values]
    return found + list(more)


def _one(verb: str, dirs: Iterable[Dir], options: dict[str, Any], more: Sequence[str], progress: Heard = None) -> Any:
    """Runs a verb on a group. A report that says that the group is not whole answers verify and status, and one that
    says that nothing is removed answers unprotect."""
    found, code, errors = run(verb, _flags(options, more), dirs, progress)
    if any("sets" in x and "dirs" in x for x in found):
        raise ValueError(f"volley.{verb} is for one group, and was run on sets, as the group file has group-size: in_sets returns their reports")
    reports = [read(_REPORTS[verb], x) for x in found]
    fine = {"verify": _NOT_WHOLE, "status": _NOT_WHOLE, "unprotect": _REFUSED}.get(verb)
    if len(reports) != 1 or code not in (0, fine):
        raise failure(code, errors, verb, reports)
    return reports[0]


def protect(
    dirs: Iterable[Dir] = (),
    tolerate: int | None = None,
    *,
    group: Dir | None = None,
    digest: str | None = None,
    dry_run: bool = False,
    accept: str | Sequence[str] | None = None,
    force: bool = False,
    step: int | Literal["latest"] | None = None,
    retain: int | None = None,
    key: Dir | None = None,
    progress: Heard = None,
    flags: Sequence[str] = (),
) -> ProtectReport:
    """Protects directories, one for each node: any `tolerate` of the nodes may then be lost,
    None as many as in the last run.

    `group` is a group file, in place of directories and what else it says.
    `digest` is sha256, blake3 or xxh3, None as in the last run. `dry_run` says what it would take, and writes nothing. `accept` protects although most files of a node are "deleted", or "changed", and
    `force` although nodes are lost. With `step` each directory is a root of
    snapshots: `step-N` of each, or their "latest", is protected, and then those older than the newest `retain` are removed. `key` is a file with the key of the group.
    `progress` is called from time to time with a `Progress`: bytes done and in all. `flags` are others of the command
    line, such as `["--limit-rate", "100MB"]`.

    Raises `Refused` or `RunFailed`. The earlier protection then stays in force.
    """
    options: dict[str, Any] = {"group": group, "tolerate": tolerate, "digest": digest, "dry_run": dry_run, "accept": accept, "force": force}
    options.update(step=step, retain=retain, key=key)
    report: ProtectReport = _one("protect", dirs, options, flags, progress)
    return report


def verify(
    dirs: Iterable[Dir] = (),
    *,
    group: Dir | None = None,
    step: int | Literal["latest"] | None = None,
    key: Dir | None = None,
    progress: Heard = None,
    flags: Sequence[str] = (),
) -> VerifyReport:
    """Reads every byte of a group, and compares it with the digests. `whole` of the report says whether all is right.

    With `step` each directory is a root of snapshots: `step-N` of each, or the "latest" in force, is verified. `group` and
    `progress` are those of `protect`.

    Raises `Refused` or `RunFailed` where that cannot be told.
    """
    report: VerifyReport = _one("verify", dirs, {"group": group, "step": step, "key": key}, flags, progress)
    return report


def status(
    dirs: Iterable[Dir] = (),
    *,
    group: Dir | None = None,
    step: int | Literal["latest"] | None = None,
    key: Dir | None = None,
    flags: Sequence[str] = (),
) -> VerifyReport:
    """Says at a glance how a group is: it compares names, lengths and times, and reads no file.

    `group` and `step` are those of `verify`.

    Raises `Refused` or `RunFailed` where that cannot be told.
    """
    report: VerifyReport = _one("status", dirs, {"group": group, "step": step, "key": key}, flags)
    return report


def recover(
    dirs: Iterable[Dir] = (),
    *,
    group: Dir | None = None,
    file: str | Sequence[str] | None = None,
    to: Dir | None = None,
    revert: str | Sequence[str] | None = None,
    dry_run: bool = False,
    step: int | Literal["latest"] | None = None,
    key: Dir | None = None,
    progress: Heard = None,
    flags: Sequence[str] = (),
) -> RecoverReport:
    """Brings back what lost nodes had, and damaged files. Name all nodes: of lost ones an empty directory.

    `file` brings back single files alone, by patterns as in `.gitignore`, also at nodes that are whole, and deleted ones.
    With `to` what was protected of these is copied there for all nodes, and nothing changes in the group.

    `revert` brings back, too, what users have "changed" or "deleted" since. `dry_run` says what would be done.

    With `step` each directory is a root of snapshots: "latest" brings back the newest that is not lost, and sets aside
    those that are lost; a number brings back `step-N`, and sets none aside. `group` and `progress` are those
    of `protect`.

    Raises `NotWhole` where not everything is back: its `reports` say what is. Raises `Refused` or `RunFailed` where
    nothing is.
    """
    options: dict[str, Any] = {"group": group, "file": file, "to": to, "revert": revert}
    options |= {"dry_run": dry_run, "step": step, "key": key}
    report: RecoverReport = _one("recover", dirs, options, flags, progress)
    return report


def unprotect(
    dirs: Iterable[Dir] = (), *, group: Dir | None = None, dry_run: bool = False, force: bool = False, key: Dir | None = None, flags: Sequence[str] = ()
) -> UnprotectReport:
    """Ends the protection of a group: removes the `.volley` of every node. Your files stay.

    `dry_run` says what is in force, and removes nothing. `force` removes it although something is lost or damaged, which
    then never comes back. `group` is that of `protect`.

    Raises `NotWhole` where a node could not be read, and may keep its `.volley`, `Refused` where something would be lost,
    or `RunFailed`: another call completes what was begun.
    """
    options = {"group": group, "yes": not dry_run, "force": force, "key": key}
    report: UnprotectReport = _one("unprotect", dirs, options, flags)
    return report


def snapshots(roots: Iterable[Dir] = (), *, group: Dir | None = None, key: Dir | None = None, flags: Sequence[str] = ()) -> SnapshotsReport:
    """Says which snapshots `step-N` are below the roots of all nodes, and which of them can be brought back.

    `group` is that of `protect`.

    Raises `Refused` or `RunFailed` where that cannot be told.
    """
    report: SnapshotsReport = _one("snapshots", roots, {"group": group, "key": key}, flags)
    return report


def in_sets(verb: str, dirs: Iterable[Dir] = (), group_size: int | None = None, *, flags: Sequence[str] = (), **options: Any) -> list[SetReport]:
    """Runs a verb on many nodes that are cut into sets of at most `group_size`, each a group of its own.

    `options` are those of the verb, such as `tolerate=2`, and `group`: a group file, which may say all of this.
    A set that fails does not hold up the others: raises the error of the first one, with all `reports`.
    """
    if verb not in _REPORTS or verb == "snapshots":
        raise ValueError(f"{verb!r}: want protect, verify, recover, status or unprotect")
    found, code, errors = run(verb, _flags({"group_size": group_size, **options}, flags), dirs)
    reports = [read(SetReport, x) for x in found]
    for r in reports:
        if r.report is not None:
            r.report = read(_REPORTS[verb], r.report)  # type: ignore[arg-type]
    if not reports or code not in (0, _NOT_WHOLE) or any(r.report is None for r in reports) or code and verb == "recover":
        raise failure(code, errors, verb, reports)
    return reports
