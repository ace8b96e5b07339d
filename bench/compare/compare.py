#!/usr/bin/env python3
"""compare.py BIN: volley protect, verify and recover beside redset and FTI, whose programs `build` has put into BIN.

All tools take turns in one loop, over MPI and in one process: protect, verify, lose the directories of one rank and of
two, rebuild, and compare every file with what it was. It prints a table of medians, in seconds inside the job: without
the start of MPI. Each row comes when the tool has ended its last turn; each turn is reported on stderr. The row "hashing" is the time to read all data and to hash it by SHA-256 once, on all cores.
redset has no digests, so it does not notice when a survivor's file has changed.

Behind a time of Volley stands how many times as long it is as its yardstick. With xxh3 that is redset's time, with
SHA-256 redset's and h, for verify h alone, and for layout full the time with xxh3 and h. h is the time of hashing for
data and parity together.

--lab RATE runs every rank at a host of its own, whose link has that rate, as root: bench/network/lab. Behind each time
stands how many times as long it is as the bytes of the busiest link take at that rate.

--stall N protects N times by layout full, R = 2, over MPI. It prints the seconds of each run as the run ends, and then
the median, the maximum, and how many runs took more than twice the median.
"""
import argparse, concurrent.futures, glob, hashlib, json, os, re, shutil, signal, statistics, subprocess, sys, tempfile, time

numbers = lambda text: [int(k) for k in text.split(",")]
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("bin", help="where build has put redset and fti; those that are not there are left out")
parser.add_argument("--volley", default="volley", help="a binary made with -tags mpi")
parser.add_argument("--ranks", type=numbers, default="4,8,16")
parser.add_argument("--mib", type=int, default=128, help="of data at each rank")
parser.add_argument("--files", type=numbers, default="1", help="at each rank")
parser.add_argument("--repeat", type=int, default=5)
parser.add_argument("--dir", default="/dev/shm")
parser.add_argument("--only", metavar="REGEXP", default="", help="tools whose names have it, such as 'redset|striped sha256'")
parser.add_argument("--lab", metavar="RATE", help="such as 100mbit")
parser.add_argument("--stall", metavar="N", type=int)
a = parser.parse_args()
env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
lab = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../network/lab")


def alive(pid):
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


for old in glob.glob(f"{a.dir}/volley-compare-*"):  # of runs that were killed
    pid = os.path.basename(old).split("-")[2]
    if pid.isdigit() and not alive(pid):
        shutil.rmtree(old, ignore_errors=True)
for number in signal.SIGTERM, signal.SIGHUP:
    signal.signal(number, lambda number, _: sys.exit(128 + number))
base = tempfile.mkdtemp(prefix=f"volley-compare-{os.getpid()}-", dir=a.dir)


def run(command):
    """The output of a command that has to succeed. It ends when this program does."""
    p = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = p.communicate(timeout=600)
    except BaseException:
        p.terminate()  # mpirun ends its ranks
        p.wait(60)
        raise
    if p.returncode:
        sys.exit(f"{' '.join(command)}: exit code {p.returncode}\n{out}{err}")
    return out


def busiest():
    """The bytes that each link has carried, in either direction."""
    return [int(n) for line in run([lab, "stats"]).splitlines()[1:] for n in (line.split()[1], line.split()[4])]


def seconds(text):
    return float(re.search(r"^seconds ([\d.]+)", text, re.M)[1])


redset = {1: "redset XOR", 2: "redset RS"}


class Tool:
    def __init__(self, k, name, r):
        self.k, self.name, self.r, self.lost = k, name, r, r
        self.nodes = [f"{base}/n{i}" for i in range(k)]
        self.pattern = f"{base}/n{{rank}}"

    def mpi(self, *command):
        if a.lab:
            return run([lab, "mpirun", *command])
        return run(["mpirun", "--oversubscribe", "-n", str(self.k), *command])

    def verify(self):
        return None

    def clean(self):
        for n in self.nodes:
            for f in os.listdir(n):
                if f.startswith("."):
                    path = os.path.join(n, f)
                    shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


class Redset(Tool):
    def work(self, verb):
        return seconds(self.mpi(f"{a.bin}/redset", verb, "xor" if self.r == 1 else "rs", str(self.r), self.pattern))


class FTI(Tool):
    def __init__(self, k, name, r):
        super().__init__(k, name, r)
        self.files, self.nodes = self.nodes, [f"{base}/fti/local/node{i}" for i in range(k)]

    def work(self, verb):
        config = f"{base}/fti/config"
        if verb == "protect":
            for d in "local", "global", "meta":
                os.makedirs(f"{base}/fti/{d}")
            with open(config, "w") as f:
                f.write(f"""[basic]
head=0\nnode_size=1\ngroup_size={self.k}\nckpt_dir={base}/fti/local\nglbl_dir={base}/fti/global\nmeta_dir={base}/fti/meta
ckpt_l1=0\nckpt_l2=0\nckpt_l3=0\nckpt_l4=0\ndcp_l4=0\ninline_l2=1\ninline_l3=1\ninline_l4=1\nkeep_last_ckpt=0\nkeep_l4_ckpt=0
max_sync_intv=0\nckpt_io=1\nverbosity=2
[restart]\nfailure=0\nexec_id=xxx
[injection]\nrank=0\nnumber=0\nposition=0\nfrequency=0
[advanced]\nblock_size=1024\ntransfer_size=16\ngeneral_tag=2612\nckpt_tag=711\nstage_tag=406\nfinal_tag=3107\nlocal_test=1
lustre_striping_unit=4194304\nlustre_striping_factor=-1\nlustre_striping_offset=-1
""")
        return seconds(self.mpi(f"{a.bin}/fti", config, f"{self.pattern}/ckpt.0", str(a.mib << 20)))

    def clean(self):
        shutil.rmtree(f"{base}/fti")


class Volley(Tool):
    def work(self, verb):
        words = self.name.split()
        command = [a.volley, verb, "--json"]
        if verb == "protect":
            command += ["--tolerate", str(self.r), "--layout", words[1], "--digest", words[2]]
        if words[-1] == "process":
            return json.loads(run(command + self.nodes))["seconds"]
        return json.loads(self.mpi(*command, "--comm", "mpi", self.pattern))["seconds"]

    def verify(self):
        return None if a.lab else self.work("verify")


class Hashing(Tool):
    def work(self, verb):
        def digest(path):
            with open(path, "rb") as f:
                return hashlib.file_digest(f, "sha256").digest()

        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for _ in pool.map(digest, [os.path.join(n, f) for n in self.nodes for f in os.listdir(n)]):
                pass
        return time.monotonic() - began


def tools(k, files):
    list = [] if a.lab else [Hashing(k, "hashing", 0)]
    if os.path.exists(f"{a.bin}/redset"):
        list += [Redset(k, redset[r], r) for r in (1, 2) if r < k]
    if os.path.exists(f"{a.bin}/fti") and files == 1:
        list.append(FTI(k, "FTI level 3", 2))
    for r in range(1, min(3, k)):
        for where in ["over MPI"] if a.lab else ["over MPI", "in one process"]:
            list += [Volley(k, f"Volley striped {digest} {where}", r) for digest in ("xxh3", "sha256")]
        if 2 * r <= k:
            list += [Volley(k, f"Volley full {digest} over MPI", r) for digest in ("xxh3", "sha256")]
            list[-2].lost = 0  # it is a yardstick
    return [t for t in list if re.search(a.only, t.name)]


def contents(nodes):
    return {(n, f): open(os.path.join(n, f), "rb").read() for n in nodes for f in sorted(os.listdir(n)) if not f.startswith(".")}


def fill(k, files):
    for i in range(k):
        os.makedirs(f"{base}/n{i}")
        for f in range(files):
            with open(f"{base}/n{i}/ckpt.{f}", "wb") as out:
                out.write(os.urandom((a.mib << 20) // files))


def timed(work, *args):
    """Its seconds, and those that the busiest link takes for its bytes."""
    before = busiest() if a.lab else []
    took = work(*args)
    if took is None or not a.lab:
        return took, None
    return took, max(y - x for x, y in zip(before, busiest())) * 8 / rate


def compare(k, files):
    fill(k, files)
    list = tools(k, files)
    took = [[[], [], [], []] for _ in list]
    medians = {}
    for turn in range(bool(a.lab), a.repeat + 1):  # in memory the first one warms up
        for t, times in zip(list, took):
            print(f"turn {turn}: {t.name}", end="", file=sys.stderr, flush=True)
            steps = [timed(t.work, "protect"), timed(t.verify)]
            for lost in range(1, t.lost + 1):
                dead = [t.nodes[1], t.nodes[k - 2]][:lost]
                want = contents(dead) if not isinstance(t, FTI) else None  # its program compares
                for n in dead:
                    shutil.rmtree(n)
                steps.append(timed(t.work, "recover"))
                if want is not None and contents(dead) != want:
                    sys.exit(f"{t.name}: what it rebuilt is not what was lost")
            t.clean()
            print(": " + ", ".join(f"{x:.2f} s" for x, _ in steps if x is not None), file=sys.stderr, flush=True)
            if turn:
                for times_of, step in zip(times, steps):
                    times_of.append(step)
            if turn < a.repeat:
                continue
            medians[t.name, t.r] = [statistics.median(x for x, _ in step) if step and step[0][0] is not None else None for step in times]
            cells = [cell(step, yardstick(medians, t, i)) for i, step in enumerate(times)]
            print(f"| {k} | {files} | {t.name} | {t.r or '–'} | {' | '.join(cells)} |", flush=True)
    for i in range(k):
        shutil.rmtree(f"{base}/n{i}")


def yardstick(medians, t, step):
    """What the time of a step is compared with, or None."""
    words, hashing = t.name.split(), medians.get(("hashing", 0), [None])[0]
    if words[0] != "Volley" or a.lab:
        return None
    hashes, full = words[2] == "sha256", words[1] == "full"
    other = (t.name.replace("sha256", "xxh3"), t.r) if full else (redset[t.r], t.r)
    parts = [] if step == 1 else [medians.get(other, [None] * 4)[step]]
    if hashes:
        parts.append(hashing and hashing * (2 if full else t.k / (t.k - t.r)))
    return None if None in parts or full and not hashes else sum(parts)


def cell(times, yard):
    if not times or times[0][0] is None:
        return "–"
    median = statistics.median(x for x, _ in times)
    if a.lab:
        yard = median / statistics.median(x / link for x, link in times)
    return f"{median:.2f} ({median / yard:.2f})" if yard else f"{median:.2f}"


def stall(k):
    fill(k, 1)
    t, took = Volley(k, "Volley full sha256 over MPI", 2), []
    for i in range(a.stall):
        took.append(t.work("protect"))
        t.clean()
        print(f"run {i + 1} of {a.stall}: {took[-1]:.2f} s", flush=True)
    median = statistics.median(took)
    print(f"K = {k}, layout full, R = 2, {a.mib} MiB a rank: {a.stall} runs, median {median:.2f} s, maximum {max(took):.2f} s, "
          f"{sum(x > 2 * median for x in took)} beyond twice the median", flush=True)
    for n in t.nodes:
        shutil.rmtree(n)


up = False
try:
    if a.lab:
        number, unit = re.fullmatch(r"(\d+)([kmg]bit)", a.lab).groups()
        rate = int(number) * {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}[unit]
    if not a.stall:
        print("| K | files | tool | R | protect | verify | rebuild one | rebuild two |\n|---|---|---|---|---|---|---|---|")
    for k in a.ranks:
        if a.lab:
            up = True
            run([lab, "up", str(k), a.lab, "0"])
        if a.stall:
            stall(k)
            continue
        for files in a.files:
            compare(k, files)
finally:
    if up:
        subprocess.run([lab, "down"], env=env)
    shutil.rmtree(base, ignore_errors=True)
