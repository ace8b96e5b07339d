#!/usr/bin/env python3
"""replicate.py receive ADDRESS COUNT | replicate.py send ADDRESS DIR INTO: plain copies of directories, by TCP.

`receive` accepts COUNT copies, and writes each into the directory that its sender names. There is no encryption.
"""
import os, socket, sys, tarfile, threading

PORT = 7878


def take(connection):
    with connection, connection.makefile("rb") as stream:
        into = os.fsdecode(stream.readline().rstrip(b"\n"))
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            archive.extractall(into)


if sys.argv[1] == "send":
    address, directory, into = sys.argv[2:]
    with socket.create_connection((address, PORT)) as s, s.makefile("wb") as stream:
        stream.write(os.fsencode(into) + b"\n")
        with tarfile.open(fileobj=stream, mode="w|", bufsize=1 << 20) as archive:
            archive.add(directory, ".", filter=lambda f: None if f.name.startswith("./.") else f)
else:
    with socket.create_server((sys.argv[2], PORT)) as server:
        print("listens", flush=True)
        takers = [threading.Thread(target=take, args=[server.accept()[0]]) for _ in range(int(sys.argv[3]))]
        for t in takers:
            t.start()
        for t in takers:
            t.join()
