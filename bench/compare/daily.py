#!/usr/bin/env python3
"""daily.py: what an operator does every day with SnapRAID, restic and Volley, on the same files. Needs root.

Eight directories, each an ext4 whose image lies in memory, are protected by all three at once, so that any two may be lost: by
SnapRAID and restic, those in PATH, with what they store on two more file systems, by Volley in the directories. In
each turn one file of each directory gets other content; the tools say what has changed, take it in, and compare
everything with what they know. Then a file rots, and one is deleted, anew for each tool; the tool brings it back, and
its bytes and time are compared. A row is a command: MiB that its process has read and written, by the system's count
(/proc/PID/io: rchar, wchar), seconds, and seconds of all cores, medians of the turns.
"""
import argparse, ctypes, os, resource, shutil, signal, statistics, subprocess, sys, tempfile, time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--volley", default="volley")
parser.add_argument("--digest", default="sha256", help="Volley's")
parser.add_argument("--nodes", type=int, default=8)
parser.add_argument("--files", type=int, default=128, help="of 1 MiB, in each directory")
parser.add_argument("--repeat", type=int, default=3)
parser.add_argument("--dir", default="/dev/shm")
a = parser.parse_args()

for number in signal.SIGTERM, signal.SIGHUP:
    signal.signal(number, lambda number, _: sys.exit(128 + number))
base = tempfile.mkdtemp(prefix="volley-daily-", dir=a.dir)
nodes = [f"{base}/d{i}" for i in range(a.nodes)]
apart = [f"{base}/p{i}" for i in range(2)]
conf, repository = f"{base}/snapraid.conf", f"{apart[0]}/repository"
env = dict(os.environ, RESTIC_PASSWORD="daily", RESTIC_REPOSITORY=repository)
snapraid, restic = ["snapraid", "-q", "-c", conf], ["restic", "-q", "--no-cache"]
name = lambda node, n: f"n{node}-{n:03}"


def run(command, codes=(0,)):
    """MiB that a command has read and written, its seconds, and those of all cores."""
    spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    began, cores = time.monotonic(), spent()
    p = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    out = p.stdout.read()
    os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and the system still knows its counts
    took = time.monotonic() - began
    counts = dict(line.split(": ") for line in open(f"/proc/{p.pid}/io").read().splitlines())
    if p.wait() not in codes:
        sys.exit(f"{' '.join(command)}: exit code {p.returncode}\n{out}")
    return int(counts["rchar"]) / 2**20, int(counts["wchar"]) / 2**20, took, spent() - cores


class SnapRAID:
    first = change = lambda self: [*snapraid, "sync"]
    look = lambda self: ([*snapraid, "diff"], (2,))
    compare = lambda self: [*snapraid, "-p", "full", "scrub"]
    part = lambda self: [*snapraid, "-p", "12", "-o", "0", "scrub"]
    back = lambda self, node, f: [*snapraid, "-f", f"/{f}", "fix"]


class Restic:
    first = change = lambda self: [*restic, "backup", "--exclude=.volley", *nodes]
    look = lambda self: (["restic", "--no-cache", "backup", "--dry-run", "-v", "--exclude=.volley", *nodes], (0,))
    compare = lambda self: [*restic, "check", "--read-data"]
    part = lambda self: [*restic, "check", "--read-data-subset=12%"]
    back = lambda self, node, f: [*restic, "restore", "latest", "--target", "/", f"--include={nodes[node]}/{f}"]


class Volley:
    first = lambda self: [a.volley, "protect", "--tolerate", "2", "--digest", a.digest, *nodes]
    change = lambda self: [a.volley, "protect", "--tolerate", "2", *nodes]
    look = lambda self: ([a.volley, "status", *nodes], (0,))
    compare = lambda self: [a.volley, "verify", *nodes]
    back = lambda self, node, f: [a.volley, "recover", "--revert", "changed", "--file", f"/{f}", *nodes]  # as its ctime has moved


def write(path):
    with open(path, "wb") as f:
        f.write(os.urandom(1 << 20))


def rot(path):
    info = os.stat(path)
    with open(path, "r+b") as f:
        f.seek(1000)
        byte = f.read(1)
        f.seek(1000)
        f.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


ctypes.CDLL(None).unshare(0x20000)  # what is mounted is seen by this program and its children only, and goes with them
run(["mount", "--make-rprivate", "/"])
try:
    for d in nodes + apart:
        os.mkdir(d)
        with open(f"{d}.image", "wb") as f:
            f.truncate((a.files * (4 * a.nodes if d in apart else 4) + 256) << 20)
        run(["mkfs.ext4", "-q", "-m0", f"{d}.image"])
        run(["mount", "-o", "loop", f"{d}.image", d])
        os.rmdir(f"{d}/lost+found")
    with open(conf, "w") as f:
        f.write(f"parity {apart[0]}/parity\n2-parity {apart[1]}/parity\ncontent {base}/content\n")
        f.writelines(f"content {d}/content\n" for d in apart)
        f.writelines(f"data d{i} {d}\n" for i, d in enumerate(nodes))
        f.write("exclude /.volley/\nexclude /replaced/\n")
    for node, d in enumerate(nodes):
        for n in range(a.files):
            write(f"{d}/{name(node, n)}")
    os.sync()
    time.sleep(3)  # what has changed a moment ago is read again by the next run
    run(["restic", "init", "-q"])
    tools = {"SnapRAID": SnapRAID(), "restic": Restic(), "Volley": Volley()}
    measured = {}
    measure = lambda act, tool, result: measured.setdefault((act, tool), []).append(result)
    for tool, t in tools.items():
        measure("protect all", tool, run(t.first()))
    for turn in range(a.repeat):
        time.sleep(1.1)
        for node, d in enumerate(nodes):
            write(f"{d}/{name(node, turn)}")
        for tool, t in tools.items():
            command, codes = t.look()
            measure("say what has changed", tool, run(command, codes))
            measure("take in what has changed", tool, run(t.change()))
        for tool, t in tools.items():
            measure("compare everything", tool, run(t.compare()))
            if hasattr(t, "part"):
                measure("compare an eighth", tool, run(t.part()))
        for act, harm in ("mend a rotten file", rot), ("bring back a deleted file", os.unlink):
            for tool, t in tools.items():
                path = f"{nodes[3]}/{name(3, a.files // 2)}"
                want, when = open(path, "rb").read(), os.stat(path).st_mtime_ns
                harm(path)
                measure(act, tool, run(t.back(3, os.path.basename(path))))
                if open(path, "rb").read() != want or os.stat(path).st_mtime_ns != when:
                    sys.exit(f"{tool}: {act}: it is not what it was")
                for other in tools.values():  # a file that has come back is another file: let all know it
                    run(other.change())
    print("| | tool | read, MiB | written, MiB | seconds | of cores |\n|---|---|---|---|---|---|")
    for (act, tool), results in sorted(measured.items(), key=lambda x: list(dict.fromkeys(act for act, _ in measured)).index(x[0][0])):
        read, written, took, cores = (statistics.median(column) for column in zip(*results))
        print(f"| {act} | {tool} | {read:,.4g} | {written:,.4g} | {took:.2f} | {cores:.2f} |")
finally:
    for d in nodes + apart:
        subprocess.run(["umount", d], stderr=subprocess.DEVNULL)
    shutil.rmtree(base, ignore_errors=True)
