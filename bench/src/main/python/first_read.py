"""What the start of a program that reads costs: import, open, 4 KiB of the file that is named, and a check of them."""

import sys

import gpunvme

into = bytearray(4096)
with gpunvme.Storage(sys.argv[1], "cpu") as storage:
    storage.read(0, into)
with open(sys.argv[1], "rb") as file:
    if file.read(len(into)) != into:
        raise SystemExit("wrong data")
