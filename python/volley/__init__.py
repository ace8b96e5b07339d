"""Protect directories of many machines, so that those that are lost come back.

`protect`, `verify`, `recover`, `status`, `unprotect` and `snapshots` do what the verbs of the command line do, and return its reports.
`volley.torch` protects the checkpoints of a job under torch.distributed. `volley.mpi` calls libvolley in the
processes of an MPI job.

The package starts the binary `volley`: the one that `$VOLLEY` names, else the one in the wheel, else the first
in the `PATH`.
"""

from ._run import Cancelled, Error, NothingProtected, NotWhole, Progress, Refused, RunFailed, binary
from ._version import __commit__, __version__
from .reports import Cost, Finding, NodeReport, ProtectReport, Reading, Recovered, RecoverReport, Risk, SetReport, Snapshot, SnapshotsReport, Traffic, UnprotectReport, VerifyReport
from .verbs import in_sets, protect, recover, snapshots, status, unprotect, verify

__all__ = [
    "Cancelled",
    "Cost",
    "Error",
    "Finding",
    "NodeReport",
    "NotWhole",
    "NothingProtected",
    "Progress",
    "ProtectReport",
    "Reading",
    "RecoverReport",
    "Recovered",
    "Refused",
    "Risk",
    "RunFailed",
    "SetReport",
    "Snapshot",
    "SnapshotsReport",
    "Traffic",
    "UnprotectReport",
    "VerifyReport",
    "__commit__",
    "__version__",
    "binary",
    "in_sets",
    "protect",
    "recover",
    "snapshots",
    "status",
    "unprotect",
    "verify",
]
