#!/usr/bin/env python3
"""zfeccode.py K LOST FILE...: computes files by zfec. FILEs are K of data and then those of parity, all of one length.

LOST are the numbers of those to compute, such as 1,6. The first K of the others are read. Debian's python3-zfec has no
command line: this is what a program does that uses it, with a process for each core.
"""
import concurrent.futures, os, sys

import zfec

PIECE = 64 << 10  # of each file at a time: all stay in the cache
k, lost, files = int(sys.argv[1]), [int(n) for n in sys.argv[2].split(",")], sys.argv[3:]


def code(span):
    """Computes what is lost of the bytes of a span."""
    have = [n for n in range(len(files)) if n not in lost][:k]
    ins, outs = [os.open(files[n], os.O_RDONLY) for n in have], [os.open(files[n], os.O_WRONLY) for n in lost]
    encoder, decoder = zfec.Encoder(k, len(files)), zfec.Decoder(k, len(files))
    for at in range(*span, PIECE):
        blocks = [os.pread(f, min(PIECE, span[1] - at), at) for f in ins]
        if have != list(range(k)):  # data first: parity is of data
            blocks = decoder.decode(blocks, have)
        parity = [n for n in lost if n >= k]
        coded = dict(zip(parity, encoder.encode(blocks, parity))) if parity else {}
        for n, f in zip(lost, outs):
            os.pwrite(f, coded[n] if n >= k else blocks[n], at)


if __name__ == "__main__":
    length = os.path.getsize(next(f for n, f in enumerate(files) if n not in lost))
    for n in lost:
        open(files[n], "wb").close()
    cores = os.cpu_count()
    cuts = [length * i // cores for i in range(cores + 1)]
    with concurrent.futures.ProcessPoolExecutor(cores) as pool:
        list(pool.map(code, zip(cuts, cuts[1:])))
