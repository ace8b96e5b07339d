#!/usr/bin/env python3
"""onehost.py: what protect and recover take in one process for each node, beside one process for all of them, on one host.

The four nodes lie in memory. The two ways take turns. It prints the medians, in core-seconds and in seconds, with the
start of the processes, and the ratio of the core-seconds.
"""
import argparse, os, secrets, shutil, statistics, subprocess, tempfile, time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--volley", default="volley")
parser.add_argument("--mib", type=int, default=96, help="at each node")
parser.add_argument("--tolerate", default="1")
parser.add_argument("--digest", default="xxh3")
parser.add_argument("--repeat", type=int, default=9)
a = parser.parse_args()
k = 4


def work(commands):
    """Core-seconds and seconds of processes that run together."""
    before, began = os.times(), time.monotonic()
    processes = [subprocess.Popen(c, stdout=subprocess.DEVNULL) for c in commands]
    failed = [p.args for p in processes if p.wait()]
    if failed:
        raise SystemExit(f"failed: {failed}")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system, time.monotonic() - began


def together(verb, nodes):
    return [[a.volley, *verb, "--comm", "local", *nodes]]


def apart(verb, nodes):
    os.environ["VOLLEY_SECRET"] = secrets.token_hex(32)
    meet = f"127.0.0.1:{20000 + os.getpid() % 10000}"
    return [[a.volley, *verb, "--rank", str(r), "--size", str(k), "--meet", meet, "--port", "", n] for r, n in enumerate(nodes)]


with tempfile.TemporaryDirectory(dir="/dev/shm") as base:
    nodes = [f"{base}/{n}" for n in range(k)]
    for node in nodes:
        os.mkdir(node)
        with open(f"{node}/data", "wb") as f:
            for _ in range(a.mib):
                f.write(os.urandom(1 << 20))
    taken = {}
    for turn in range(a.repeat + 1):
        for way in together, apart:
            for node in nodes:
                shutil.rmtree(f"{node}/.volley", ignore_errors=True)
            protect = work(way(["protect", "--quiet", "--tolerate", a.tolerate, "--digest", a.digest], nodes))
            shutil.rmtree(nodes[1])
            recover = work(way(["recover", "--quiet"], nodes))
            if turn:
                taken.setdefault(("protect", way), []).append(protect)
                taken.setdefault(("recover", way), []).append(recover)
    for verb in "protect", "recover":
        one, four = ([statistics.median(x) for x in zip(*taken[verb, way])] for way in (together, apart))
        print(f"{verb}: one process {one[0]:.2f} core-seconds, {one[1]:.2f} s; four {four[0]:.2f}, {four[1]:.2f} s; {four[0] / one[0]:.2f} times the core-seconds")
