#!/usr/bin/env python3
"""compare.py BIN: volley protect and recover beside redset and FTI, whose programs `build` has put into BIN.

All tools take turns in one loop, over MPI and in one process: protect, lose the directories of one rank and of two,
rebuild, and compare every file with what it was. It prints a table of medians, in seconds inside the job: without the
start of MPI. redset has no digests, so it does not notice when a survivor's file has changed.
"""
import argparse, json, os, re, shutil, statistics, subprocess, sys, tempfile

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("bin", help="where build has put redset and fti; those that are not there are left out")
parser.add_argument("--volley", default="volley", help="a binary made with -tags mpi")
parser.add_argument("--ranks", type=lambda x: [int(k) for k in x.split(",")], default="4,8,16")
parser.add_argument("--mib", type=int, default=128, help="of data at each rank")
parser.add_argument("--files", type=int, default=1, help="at each rank")
parser.add_argument("--repeat", type=int, default=5)
parser.add_argument("--dir", default="/dev/shm")
a = parser.parse_args()
env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
base = tempfile.mkdtemp(prefix="volley-compare-", dir=a.dir)


def run(command):
    """The output of a command that has to succeed."""
    p = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    if p.returncode:
        sys.exit(f"{' '.join(command)}: exit code {p.returncode}\n{p.stdout}{p.stderr}")
    return p.stdout


def seconds(text):
    return float(re.search(r"^seconds ([\d.]+)", text, re.M)[1])


class Tool:
    def __init__(self, k, name, r):
        self.k, self.name, self.r = k, name, r
        self.nodes = [f"{base}/n{i}" for i in range(k)]
        self.pattern = f"{base}/n{{rank}}"

    def mpi(self, *command):
        return run(["mpirun", "--oversubscribe", "-n", str(self.k), *command])

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


def tools(k):
    list = []
    if os.path.exists(f"{a.bin}/redset"):
        list += [Redset(k, "redset XOR", 1), Redset(k, "redset RS", 2)]
    if os.path.exists(f"{a.bin}/fti") and a.files == 1:
        list.append(FTI(k, "FTI level 3", 2))
    for r in 1, 2:
        for where in "over MPI", "in one process":
            list += [Volley(k, f"Volley striped {digest} {where}", r) for digest in ("sha256", "xxh3")]
        if 2 * r <= k:
            list.append(Volley(k, "Volley full sha256 over MPI", r))
    return list


def contents(nodes):
    return {(n, f): open(os.path.join(n, f), "rb").read() for n in nodes for f in sorted(os.listdir(n)) if not f.startswith(".")}


try:
    print("| K | tool | R | protect | rebuild one | rebuild two |\n|---|---|---|---|---|---|")
    for k in a.ranks:
        for i in range(k):
            os.makedirs(f"{base}/n{i}")
            for f in range(a.files):
                with open(f"{base}/n{i}/ckpt.{f}", "wb") as out:
                    out.write(os.urandom((a.mib << 20) // a.files))
        list = tools(k)
        took = [[[], [], []] for _ in list]
        for turn in range(a.repeat + 1):  # the first one warms up
            for t, times in zip(list, took):
                steps = [t.work("protect")]
                for lost in range(1, t.r + 1):
                    dead = [t.nodes[1], t.nodes[k - 2]][:lost]
                    want = contents(dead) if not isinstance(t, FTI) else None  # its program compares
                    for n in dead:
                        shutil.rmtree(n)
                    steps.append(t.work("recover"))
                    if want is not None and contents(dead) != want:
                        sys.exit(f"{t.name}: what it rebuilt is not what was lost")
                t.clean()
                if turn:
                    for times_of, s in zip(times, steps):
                        times_of.append(s)
        for t, times in zip(list, took):
            cells = [f"{statistics.median(x):.2f}" if x else "–" for x in times]
            print(f"| {k} | {t.name} | {t.r} | {' | '.join(cells)} |", flush=True)
        for i in range(k):
            shutil.rmtree(f"{base}/n{i}")
finally:
    shutil.rmtree(base, ignore_errors=True)
