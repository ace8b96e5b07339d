#!/usr/bin/env python3
"""Loses nodes while `volley protect --step latest` runs, at random moments, and brings the newest snapshot back.

Each node is a root below /dev/shm and a process of each run. A round writes a snapshot, starts to protect it, kills the
processes of some nodes at a random moment, and removes their roots. Then `volley recover --step latest` runs with empty roots
in their places, in another order. It has to bring back the new snapshot or the one before, and the new one if its
protection had ended before the loss. Every file of every node is compared with what was written.
"""
import argparse
import hashlib
import json
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--volley", default="volley", help="the binary")
parser.add_argument("--rounds", type=int, default=100)
parser.add_argument("--nodes", type=int, default=4)
parser.add_argument("--tolerate", type=int, default=1, help="how many nodes are lost in each round")
parser.add_argument("--mib", type=int, default=2, help="of data at a node, about")
parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 20))
a = parser.parse_args()
if not shutil.which(a.volley):
    parser.error(f"--volley {a.volley}: no such program")
chance = random.Random(a.seed)
environment = dict(os.environ, VOLLEY_SECRET=secrets.token_hex(32))
running = []


def start(verb, *flags, roots):
    """Starts a run, a process for each root."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        meet = f"127.0.0.1:{s.getsockname()[1]}"
    place = ["--comm", "tcp", "--size", str(len(roots)), "--meet", meet, "--port", "", "--timeout", "5s"]
    running[:] = [
        subprocess.Popen([a.volley, verb, *place, "--rank", str(rank), *flags, root], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank, root in enumerate(roots)
    ]


def end():
    """Waits for the run, and returns whether it went well and what it printed."""
    said = [p.communicate()[0] for p in running]
    return not any(p.returncode for p in running), "".join(said)


def succeeds(verb, *flags, roots):
    start(verb, *flags, roots=roots)
    well, said = end()
    if not well:
        raise SystemExit(f"seed {a.seed}: volley {verb} failed:\n{said}")
    return said


def save(root, step):
    """Writes a snapshot of two ranks."""
    begun = root / ".writing"
    for rank in range(2):
        file = begun / f"rank-{rank}" / "state"
        file.parent.mkdir(parents=True)
        file.write_bytes(chance.randbytes(chance.randrange(a.mib << 18, a.mib * 3 << 18)))
    begun.rename(root / f"step-{step}")


def contents(root, step):
    directory = root / f"step-{step}"
    files = (f for f in directory.rglob("*") if f.is_file() and ".volley" not in f.parts)
    return {f.relative_to(directory): hashlib.sha256(f.read_bytes()).digest() for f in files}


def main(base):
    roots = [base / f"node{n}" for n in range(a.nodes)]
    protect = ["--step", "latest", "--retain", "2", "--tolerate", str(a.tolerate)]
    came = {"new": 0, "old": 0}
    step, before, want = 0, None, {}
    for round in range(a.rounds + 1):
        step += 1
        for r in roots:
            save(r, step)
        want[step] = [contents(r, step) for r in roots]
        begun = time.monotonic()
        start("protect", *protect, roots=roots)
        if round:
            time.sleep(chance.uniform(0, 1.3 * took))
            ended = all(p.poll() == 0 for p in running)
            lost = chance.sample(range(a.nodes), a.tolerate)
            for n in lost:
                running[n].kill()
                running[n].wait()
                shutil.rmtree(roots[n])
            end()
            got = json.loads(succeeds("recover", "--step", "latest", "--json", roots=chance.sample(roots, a.nodes)))["step"]
            if got != step and (got != before or ended):
                raise SystemExit(f"seed {a.seed}, round {round}: step {got} came back, in force were {before} and perhaps {step}")
            have, due = [contents(r, got) for r in roots], want[got]
            kept = [n for n in range(a.nodes) if n not in lost]
            # Empty roots take the places of lost nodes in any order.
            if any(have[n] != due[n] for n in kept) or any(due[n] not in [have[m] for m in lost] for n in lost):
                raise SystemExit(f"seed {a.seed}, round {round}: step {got} is not what was written")
            want[got] = have
            came["new" if got == step else "old"] += 1
            begun = time.monotonic()
            start("protect", *protect, roots=roots)
            before = got
        else:
            before = step
        well, said = end()
        if not well:
            raise SystemExit(f"seed {a.seed}, round {round}: volley protect failed:\n{said}")
        took = time.monotonic() - begun
        want = {before: want[before]}
    print(f"{a.rounds} losses of {a.tolerate} of {a.nodes} nodes, seed {a.seed}: the new snapshot came back {came['new']} times, the one before {came['old']} times")


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
base = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="losses."))
try:
    main(base)
finally:
    for p in running:
        p.kill()
    shutil.rmtree(base)
