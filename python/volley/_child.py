"""Becomes the binary, as a child that ends when its parent does: PARENT NICE BINARY ARGUMENT...

It is a program of its own because what runs between fork and exec in a process with threads may hang.
"""
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(sys.argv[1]):  # it has ended before
        sys.exit("the parent has ended")
    os.nice(int(sys.argv[2]))
    os.execv(sys.argv[3], sys.argv[3:])
