#!/usr/bin/env python3
"""compare.py BIN: volley protect, verify and recover beside other tools.

redset and FTI are those that `build` has put into BIN; so are par2, par2cmdline-turbo, SnapRAID and restic, or those in
PATH; zfec is Debian's python3-zfec. What is not there is left out. All tools take turns in one loop: protect, verify,
lose the directories of one rank and of two, rebuild, and compare every file with what it was. It prints a table of
medians, in seconds inside the job: without the start of MPI. Each row comes when the tool has ended its last turn; each
turn is reported on stderr. The row "hashing" is the time to read all data and to hash it by SHA-256 once, on all cores.
redset and zfec have no digests, so they do not notice when a survivor's file has changed.

par2, SnapRAID, zfec and restic run on one machine, and keep parity in directories of their own, which are never lost;
restic keeps encrypted copies there, verifies by check --read-data, and rebuilds by restore. Their times are those of
their processes. par2 has blocks of 4 MiB: with shorter ones it takes longer to protect, with longer ones to verify and
repair. SnapRAID is meant for disks: each directory is a file system of its own, in memory, which
takes root. zfec is a library: zfeccode.py uses it.

Behind a time of Volley stands how many times as long it is as its yardstick. With xxh3 that is redset's time, with
SHA-256 redset's and h, and for verify h alone. h is the time of hashing for data and parity together.

--lab RATE runs every rank at a host of its own, whose link has that rate, as root: bench/network/lab. Volley runs over
MPI and over TCP. Behind each time
stands how many times as long it is as the bytes of the busiest link take at that rate.

--traffic, with --lab, prints bytes in place of seconds, as the links count them, in units of a host's data. protect: what
a host sends; rebuild: what all hosts send together; in brackets what the busiest link carries. stored: what a host
stores beside its data. Plain copies to R others by TCP take part (replicate.py).

--cores prints, behind the seconds, those that the cores spent on the tool's processes, their start as well. They hardly
depend on what else the machine does.

--stall N protects N times, R = 2, over MPI. It prints the seconds of each run as the run ends, and then
the median, the maximum, and how many runs took more than twice the median.
"""
import argparse, concurrent.futures, ctypes, glob, hashlib, importlib.util, json, os, re, resource, secrets, shutil, signal, statistics, subprocess, sys, tempfile, time

numbers = lambda text: [int(k) for k in text.split(",")]
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("bin", help="where build has put redset and fti, or none")
parser.add_argument("--volley", default="volley", help="a binary made with -tags mpi")
parser.add_argument("--ranks", type=numbers, default="4,8,16")
parser.add_argument("--mib", type=int, default=128, help="of data at each rank")
parser.add_argument("--files", type=numbers, default="1", help="at each rank")
parser.add_argument("--repeat", type=int, default=5)
parser.add_argument("--dir", default="/dev/shm")
parser.add_argument("--only", metavar="REGEXP", default="", help="tools whose names have it, such as 'redset|Volley sha256'")
parser.add_argument("--lab", metavar="RATE", help="such as 100mbit")
parser.add_argument("--traffic", action="store_true")
parser.add_argument("--cores", action="store_true")
parser.add_argument("--stall", metavar="N", type=int)
a = parser.parse_args()
if a.traffic and not a.lab:
    parser.error("--traffic counts what links carry: give --lab RATE, too")
data = a.mib << 20
os.environ["PATH"] = f"{os.path.abspath(a.bin)}:{os.environ['PATH']}"
env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
here = os.path.dirname(os.path.abspath(__file__))
lab = f"{here}/../network/lab"


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
    """The output of a command that has to succeed. It ends when this program does. Its seconds of all cores are kept."""
    spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = spent()
    p = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = p.communicate(timeout=600)
    except BaseException:
        p.terminate()  # mpirun ends its ranks
        p.wait(60)
        raise
    run.cores = spent() - before
    if p.returncode:
        sys.exit(f"{' '.join(command)}: exit code {p.returncode}\n{out}{err}")
    return out


def together(commands):
    with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
        return list(pool.map(run, commands))


def clock(work, *args):
    began = time.monotonic()
    work(*args)
    return time.monotonic() - began


def carried():
    """The bytes that each host has sent, and those that it has received."""
    hosts = [line.split() for line in run([lab, "stats"]).splitlines()[1:]]
    return [int(h[1]) for h in hosts], [int(h[4]) for h in hosts]


def allocated(directories):
    return sum(os.lstat(os.path.join(at, f)).st_blocks * 512 for d in directories for at, _, files in os.walk(d) for f in files)


def seconds(text):
    return float(re.search(r"^seconds ([\d.]+)", text, re.M)[1])


redset = {1: "redset XOR", 2: "redset RS"}


class Tool:
    def __init__(self, k, name, r):
        self.k, self.name, self.r = k, name, r
        self.nodes = [f"{base}/n{i}" for i in range(k)]
        self.pattern = f"{base}/n{{rank}}"

    def mpi(self, *command):
        if a.lab:
            return run([lab, "mpirun", *command])
        return run(["mpirun", "--oversubscribe", "-n", str(self.k), *command])

    def verify(self):
        return None

    def stored(self):
        """What is stored beside the data."""
        return allocated(self.nodes) - self.k * data

    def lose(self, node):
        shutil.rmtree(node)

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
        return seconds(self.mpi(f"{a.bin}/fti", config, f"{self.pattern}/ckpt.0", str(data)))

    def clean(self):
        shutil.rmtree(f"{base}/fti")


class Copies(Tool):
    """Each host has copies of the data of the R hosts before it."""

    def work(self, verb):
        lost = [i for i, n in enumerate(self.nodes) if not os.path.exists(n)]
        held = lambda host, owner: f"{self.nodes[host]}/.copy-of-{owner}"
        others = lambda owner: [(owner + r) % self.k for r in range(1, self.r + 1)]
        transfers = []  # from, directory, to, directory
        for owner, node in enumerate(self.nodes):
            source = (owner, node)
            if owner in lost:
                host = next(h for h in others(owner) if h not in lost)
                source = (host, held(host, owner))
                transfers.append((*source, owner, node))
            transfers += [(*source, h, held(h, owner)) for h in others(owner) if verb == "protect" or h in lost]
        return clock(self.copy, transfers)

    def copy(self, transfers):
        address = lambda host: f"10.78.0.{host + 1}"
        on = lambda host, *command: [lab, "exec", str(host), sys.executable, f"{here}/replicate.py", *command]
        to = [t[2] for t in transfers]
        takers = [subprocess.Popen(on(h, "receive", address(h), str(to.count(h))), stdout=subprocess.PIPE) for h in set(to)]
        try:
            for t in takers:
                t.stdout.readline()
            together([on(source, "send", address(host), directory, into) for source, directory, host, into in transfers])
            if any([t.wait(60) for t in takers]):
                sys.exit("replicate.py failed")
        finally:
            for t in takers:
                t.kill()


class Volley(Tool):
    def work(self, verb):
        words = self.name.split()
        command = [a.volley, verb, "--json"]
        if verb == "protect":
            command += ["--tolerate", str(self.r), "--digest", words[1]]
        if words[-1] == "process":
            return json.loads(run(command + self.nodes))["seconds"]
        if words[-1] == "TCP":
            env["VOLLEY_SECRET"] = secrets.token_hex(32)
            place = ["--comm", "tcp", "--size", str(self.k), "--meet", "10.78.0.1:7700", "--port", ""]
            said = together([[lab, "exec", str(i), *command, *place, "--rank", str(i), n] for i, n in enumerate(self.nodes)])
            return json.loads("".join(said))["seconds"]
        return json.loads(self.mpi(*command, "--comm", "mpi", self.pattern))["seconds"]

    def verify(self):
        return None if a.lab else self.work("verify")


class Apart(Tool):
    """Parity is in a directory of its own, which is not lost."""

    def __init__(self, k, name, r):
        super().__init__(k, name, r)
        self.parity = f"{base}/parity"

    def files(self):
        return [f"{n}/ckpt.0" for n in self.nodes]

    def work(self, verb):
        lost = [i for i, n in enumerate(self.nodes) if not os.path.exists(n)]
        for d in [self.parity, *self.nodes]:
            os.makedirs(d, exist_ok=True)
        return clock(run, self.command(verb, lost))

    def clean(self):
        shutil.rmtree(self.parity)


class Par2(Apart):
    def command(self, verb, lost):
        common = ["-q", "-q", "-m4000", f"-B{base}", f"{self.parity}/all.par2"]
        if verb == "protect":
            block = min(data, 4 << 20)
            return [self.name, "create", f"-s{block}", f"-c{-(-data // block) * self.r}", "-n1", *common, *self.files()]
        return [self.name, {"recover": "repair"}.get(verb, verb), *common]

    def verify(self):
        return self.work("verify")


class Zfec(Apart):
    def command(self, verb, lost):
        wanted = lost if verb == "recover" else range(self.k, self.k + self.r)
        parity = [f"{self.parity}/{r}" for r in range(self.r)]
        return [sys.executable, f"{here}/zfeccode.py", str(self.k), ",".join(map(str, wanted)), *self.files(), *parity]


class Restic(Apart):
    """Its repository has a copy of all data."""

    def work(self, verb):
        env.update(RESTIC_PASSWORD="compare", RESTIC_REPOSITORY=f"{self.parity}/repository")
        if verb == "protect":
            run(["restic", "init", "-q"])
        return super().work(verb)

    def command(self, verb, lost):
        common = ["restic", "-q", "--no-cache"]
        if verb == "protect":
            return [*common, "backup", *self.nodes]
        if verb == "verify":
            return [*common, "check", "--read-data"]
        return [*common, "restore", "latest", "--target", "/", *(f"--include={self.nodes[i]}" for i in lost)]

    def verify(self):
        return self.work("verify")


class SnapRAID(Apart):
    """It wants each directory to be a device."""

    def __init__(self, k, name, r):
        super().__init__(k, name, r)
        self.sources, self.nodes = self.nodes, [f"{base}/snapraid/d{i}" for i in range(k)]
        self.devices = [*self.nodes, *(f"{base}/snapraid/parity{i}" for i in range(r))]
        self.parity = f"{base}/snapraid"

    def work(self, verb):
        if verb == "protect":
            for d in self.devices:
                os.makedirs(d)
                run(["mount", "-t", "tmpfs", "tmpfs", d])
            for source, n in zip(self.sources, self.nodes):
                shutil.copytree(source, n, dirs_exist_ok=True)
            parities = self.devices[self.k :]
            lines = [f"{i + 1}-parity {d}/parity" if i else f"parity {d}/parity" for i, d in enumerate(parities)]
            lines += [f"content {d}/content" for d in [self.parity, *parities]]
            lines += [f"data d{i} {n}" for i, n in enumerate(self.nodes)]
            with open(f"{self.parity}/conf", "w") as f:
                f.write("\n".join(lines) + "\n")
        return super().work(verb)

    def command(self, verb, lost):
        return ["snapraid", "-c", f"{self.parity}/conf", {"protect": "sync", "recover": "fix"}.get(verb, verb)]

    def verify(self):
        return self.work("check")

    def lose(self, node):
        for f in os.listdir(node):
            os.unlink(os.path.join(node, f))

    def clean(self):
        for d in self.devices:
            run(["umount", d])
        super().clean()


class Hashing(Tool):
    def work(self, verb):
        def digest(path):
            with open(path, "rb") as f:
                return hashlib.file_digest(f, "sha256").digest()

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return clock(lambda: list(pool.map(digest, [os.path.join(n, f) for n in self.nodes for f in os.listdir(n)])))


def tools(k, files):
    list = [] if a.lab or a.cores else [Hashing(k, "hashing", 0)]
    if os.path.exists(f"{a.bin}/redset"):
        list += [Redset(k, redset[r], r) for r in (1, 2) if r < k]
    if os.path.exists(f"{a.bin}/fti") and files == 1:
        list.append(FTI(k, "FTI level 3", 2))
    if not a.lab and files == 1 and k > 2:
        list += [Par2(k, name, 2) for name in ("par2", "par2-turbo") if shutil.which(name)]
        if shutil.which("snapraid") and mounts:
            list.append(SnapRAID(k, "SnapRAID", 2))
        if importlib.util.find_spec("zfec"):
            list.append(Zfec(k, "zfec", 2))
        if shutil.which("restic"):
            list.append(Restic(k, "restic", 2))
    for r in range(1, min(3, k)):
        if a.traffic:
            list.append(Copies(k, "copies, plain TCP", r))
        for where in ["over MPI", "over TCP"] if a.lab else ["over MPI", "in one process"]:
            list += [Volley(k, f"Volley {digest} {where}", r) for digest in ("xxh3", "sha256")]
    return [t for t in list if re.search(a.only, t.name)]


def contents(nodes):
    return {(n, f): open(os.path.join(n, f), "rb").read() for n in nodes for f in sorted(os.listdir(n)) if not f.startswith(".")}


def fill(k, files):
    for i in range(k):
        os.makedirs(f"{base}/n{i}")
        for f in range(files):
            with open(f"{base}/n{i}/ckpt.{f}", "wb") as out:
                out.write(os.urandom(data // files))


def measured(work, *args):
    """Its seconds, and those that the busiest link takes for its bytes, or with --cores those of all cores. With
    --traffic bytes, in units of a host's data."""
    before = carried() if a.lab else []
    took = work(*args)
    if took is None or not a.lab:
        return took, run.cores if a.cores else None
    sent, received = ([y - x for x, y in zip(*way)] for way in zip(before, carried()))
    if a.traffic:
        return sum(sent) / data / (len(sent) if "protect" in args else 1), max(sent + received) / data
    return took, max(sent + received) * 8 / rate


def compare(k, files):
    fill(k, files)
    list = tools(k, files)
    took = [[[], [], [], []] for _ in list]
    medians = {}
    for turn in range(bool(a.lab), a.repeat + 1):  # in memory the first one warms up
        for t, times in zip(list, took):
            print(f"turn {turn}: {t.name}", end="", file=sys.stderr, flush=True)
            steps = [measured(t.work, "protect"), (t.stored() / data / k, None) if a.traffic else measured(t.verify)]
            for lost in range(1, t.r + 1):
                dead = [t.nodes[1], t.nodes[k - 2]][:lost]
                want = contents(dead) if not isinstance(t, FTI) else None  # its program compares
                for n in dead:
                    t.lose(n)
                steps.append(measured(t.work, "recover"))
                if want is not None and contents(dead) != want:
                    sys.exit(f"{t.name}: what it rebuilt is not what was lost")
            t.clean()
            print(": " + ", ".join(f"{x:.2f}{'' if a.traffic else ' s'}" for x, _ in steps if x is not None), file=sys.stderr, flush=True)
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
    parts = [] if step == 1 else [medians.get((redset[t.r], t.r), [None] * 4)[step]]
    if words[1] == "sha256":
        parts.append(hashing and hashing * t.k / (t.k - t.r))
    return None if None in parts else sum(parts)


def cell(times, yard):
    if not times or times[0][0] is None:
        return "–"
    median = statistics.median(x for x, _ in times)
    if a.traffic:
        return f"{median:.3g}" + (f" ({statistics.median(y for _, y in times):.3g})" if times[0][1] else "")
    if a.lab:
        yard = median / statistics.median(x / link for x, link in times)
    elif a.cores:
        return f"{median:.2f} / {statistics.median(y for _, y in times):.2f}"
    return f"{median:.2f} ({median / yard:.2f})" if yard else f"{median:.2f}"


def stall(k):
    fill(k, 1)
    t, took = Volley(k, "Volley sha256 over MPI", 2), []
    for i in range(a.stall):
        took.append(t.work("protect"))
        t.clean()
        print(f"run {i + 1} of {a.stall}: {took[-1]:.2f} s", flush=True)
    median = statistics.median(took)
    print(f"K = {k}, R = 2, {a.mib} MiB a rank: {a.stall} runs, median {median:.2f} s, maximum {max(took):.2f} s, "
          f"{sum(x > 2 * median for x in took)} beyond twice the median", flush=True)
    for n in t.nodes:
        shutil.rmtree(n)


# What SnapRAID needs is mounted where only this program and its children see it, and goes with them.
CLONE_NEWNS = 0x20000
mounts = not a.lab and ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0 and run(["mount", "--make-rprivate", "/"]) == ""
up = False
try:
    if a.lab:
        number, unit = re.fullmatch(r"(\d+)([kmg]bit)", a.lab).groups()
        rate = int(number) * {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}[unit]
    if not a.stall:
        print(f"| K | files | tool | R | protect | {'stored' if a.traffic else 'verify'} | rebuild one | rebuild two |\n|---|---|---|---|---|---|---|---|")
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
