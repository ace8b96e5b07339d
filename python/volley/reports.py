"""The reports of the verbs, as `--json` prints them."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from typing import Any, Type, TypeVar

__all__ = [
    "Cost",
    "Finding",
    "NodeReport",
    "ProtectReport",
    "RecoverReport",
    "Reading",
    "Recovered",
    "Risk",
    "SetReport",
    "Snapshot",
    "SnapshotsReport",
    "Traffic",
    "UnprotectReport",
    "VerifyReport",
]

R = TypeVar("R")


def read(kind: Type[R], data: dict[str, Any]) -> R:
    """Returns a report of what JSON has. What a newer binary adds is left out."""
    names = {f.name for f in fields(kind)}
    return kind(**{name: value for name, value in data.items() if name in names})


def _name(text: str) -> str:
    """Returns a file name as Python writes it: bytes that are no UTF-8 as os.fsdecode does."""
    if not text.startswith("base64:"):
        return text
    return os.fsdecode(base64.b64decode(text[len("base64:") :]))


def _time(text: Any) -> datetime | None:
    """Returns a time in UTC. Its nanoseconds are more than datetime has."""
    return datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc) if text else None


@dataclass
class Finding:
    """What is the matter with a file, or with something of Volley's."""

    path: str  # below the node's directory
    what: str  # missing, damaged, stale, changed, moved, new or metadata
    why: str = ""
    to: str = ""  # where what has moved lies now; "": in several directories

    def __post_init__(self) -> None:
        self.path, self.to = _name(self.path), _name(self.to)


@dataclass
class Recovered:
    """What `recover` has brought back at a node."""

    files: int
    others: int  # directories and links
    parity_bytes: int
    records: bool  # any of them, or the manifest


@dataclass
class Reading:
    """Which part of a node was read the longest ago, and when: everything was read since."""

    since: datetime | None
    part: int
    parts: int

    def __post_init__(self) -> None:
        self.since = _time(self.since)


@dataclass
class NodeReport:
    """How a node is."""

    node: int
    dir: str
    status: str  # whole, lost, failing, unreachable, foreign, or the worst of its findings
    meta: str | None = None  # where its .volley lies, unless in `dir`
    findings: list[Finding] = field(default_factory=list)
    recovered: Recovered | None = None
    busy: dict[str, object] | None = None  # by status: who writes to it, with pid, user, host, verb, since
    read: Reading | None = None  # since when all of it was read, by `verify`; None: some of it never was
    why: str = ""  # by `recover`: it cannot be read

    def __post_init__(self) -> None:
        self.read = read(Reading, self.read) if self.read else None  # type: ignore[arg-type]
        self.findings = [read(Finding, f) for f in self.findings]  # type: ignore[arg-type]
        self.recovered = read(Recovered, self.recovered) if self.recovered else None  # type: ignore[arg-type]


@dataclass
class Risk:
    """What would not come back of a node, where one more is lost than may be."""

    node: int
    dir: str
    files: int
    bytes: int
    names: list[str] = field(default_factory=list)  # of the first 10,000

    def __post_init__(self) -> None:
        self.names = [_name(p) for p in self.names]


@dataclass
class VerifyReport:
    """How a group is. `may_lose` is how many more nodes may be lost now, so that all of theirs comes back."""

    protected: bool
    whole: bool  # all of it is as it was protected
    nodes: list[NodeReport]
    generation: int = 0
    tolerate: int = 0
    may_lose: int = 0
    at_risk: list[Risk] = field(default_factory=list)  # where one more is lost
    since: datetime | None = None  # when the generation came into force
    digest: str = ""
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    step: int | None = None  # of a snapshot
    part: int = 0  # of each node that was read, of `parts`; 0: all
    parts: int = 0
    read_bytes: int = 0  # of all nodes
    unrecorded: bool = False  # no node has the record of some node: `recover` brings nothing back
    beyond: bool = False  # too much is lost, damaged or changed in some blocks: `recover` brings the rest back

    def __post_init__(self) -> None:
        self.nodes = [read(NodeReport, n) for n in self.nodes]  # type: ignore[arg-type]
        self.at_risk = [read(Risk, x) for x in self.at_risk]  # type: ignore[arg-type]
        self.since = _time(self.since)


@dataclass
class Traffic:
    """What was sent, and by which schedule."""

    plan: str
    most_sent: int  # bytes that the busiest node sent


@dataclass
class Cost:
    """What making all parity would take."""

    stored_bytes: int  # of parity, at each node
    sent_bytes: int  # by the busiest node
    messages: int  # of the busiest node
    rounds: int
    model_seconds: float
    plan: str


@dataclass
class ProtectReport:
    """What protecting took."""

    nodes: int
    places: list[str]  # directories, by node
    tolerate: int
    field: str
    digest: str
    generation: int
    files: int
    deleted_files: int  # since the last run
    changed_files: int  # since then, too
    data_bytes: int  # of all nodes
    parity_bytes: int  # at each node
    record_bytes: int  # at the node that has most
    blocks: int  # of all codewords, row by row
    coded_blocks: int  # of these: those that were not as before
    read_bytes: int  # of files, at all nodes
    traffic: Traffic
    cost: Cost
    seconds: float
    notes: list[str] | None = None
    step: int | None = None  # of a snapshot
    removed: list[int] | None = None  # steps of older snapshots
    torn: list[str] | None = None  # files that were written to each time they were read
    gone: list[str] | None = None  # files that went while they were read
    doubtful: list[str] | None = None  # files with other content under their length and time: set back, or rotten

    def __post_init__(self) -> None:
        self.traffic = read(Traffic, self.traffic)  # type: ignore[arg-type]
        self.cost = read(Cost, self.cost)  # type: ignore[arg-type]
        self.notes = self.notes or []


@dataclass
class RecoverReport:
    """What came back. `nodes` are as they were found."""

    generation: int
    nodes: list[NodeReport]
    files: int  # brought back
    blocks: int
    traffic: Traffic
    seconds: float
    kept: list[str] = field(default_factory=list)  # files that have changed and were left alone
    deleted: list[str] = field(default_factory=list)  # what users have deleted, and did not come back
    replaced: list[str] = field(default_factory=list)  # where files lie now in whose place others were recovered
    unrecovered: list[str] = field(default_factory=list)  # files that could not be brought back, and why
    reverts: list[str] = field(default_factory=list)  # by a dry run: changed and moved files that `revert` brings back
    matched: int | None = None  # what `file` fits: `nodes` tells of nothing else
    notes: list[str] = field(default_factory=list)
    step: int | None = None  # of a snapshot

    def __post_init__(self) -> None:
        self.nodes = [read(NodeReport, n) for n in self.nodes]  # type: ignore[arg-type]
        self.traffic = read(Traffic, self.traffic)  # type: ignore[arg-type]
        self.kept, self.deleted, self.replaced, self.reverts = ([_name(p) for p in x] for x in (self.kept, self.deleted, self.replaced, self.reverts))


@dataclass
class UnprotectReport:
    """What `unprotect` has removed, or would. Where the group is not `protected`, that is nothing."""

    protected: bool
    generation: int  # that was in force; 0: an earlier run had begun to remove it
    nodes: list[NodeReport]  # as they were found
    tolerate: int
    parity_bytes: int  # at each node
    remains: list[str] = field(default_factory=list)  # of a dry run: directories that cannot be read, and may keep a .volley
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes = [read(NodeReport, n) for n in self.nodes]  # type: ignore[arg-type]


@dataclass
class Snapshot:
    """How a snapshot is. `holders` are the nodes that have it protected, `present` those that have its directory."""

    step: int
    state: str  # in force, recoverable, unprotected, incomplete, unclear or busy
    protected_at: datetime | None = None
    holders: list[int] = field(default_factory=list)
    present: list[int] = field(default_factory=list)
    nodes: int = 0  # of the group that has protected it; 0: no manifest was found
    why: str = ""  # it is not in force

    def __post_init__(self) -> None:
        self.protected_at = _time(self.protected_at)


@dataclass
class SnapshotsReport:
    """Which snapshots there are, the newest first. `latest` is the newest that can be brought back."""

    nodes: int
    places: list[str]  # roots, by node
    snapshots: list[Snapshot]
    latest: int | None = None
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.snapshots = [read(Snapshot, s) for s in self.snapshots]  # type: ignore[arg-type]


@dataclass
class SetReport:
    """What a verb did with a set. `report` is the verb's, or None where the set has failed: `error` says why."""

    set: int
    sets: int
    dirs: list[str]
    domains: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    report: ProtectReport | VerifyReport | RecoverReport | UnprotectReport | None = None
    error: str = ""
