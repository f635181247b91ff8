#!/usr/bin/env python3
"""Reads a maskgrad checkpoint with only h5py and NumPy: prints its configuration and its parameters.

    python3 docs/read_checkpoint.py runs/NAME/checkpoint.h5

The format is described in docs/checkpoint-format.md.
"""
import sys
import zlib

import h5py
import numpy as np

SEAL_BYTES = 512


def seal_is_intact(path):
    """True or False; None for a file without a seal."""
    with open(path, "rb") as file:
        seal, content = file.read(SEAL_BYTES), file.read()
    if not seal.startswith(b"maskgrad seal "):
        return None
    length, crc = SEAL_BYTES + len(content), zlib.crc32(content)
    expected = b"maskgrad seal 1\nbytes %020d\ncrc32 %08x\n" % (length, crc)
    return seal == expected.ljust(SEAL_BYTES, b"\0")


def read_tokens(group):
    """The vocabulary as a list of bytes; a token need not be valid UTF-8 on its own."""
    if group.attrs["kind"] == "none":
        return []
    tokens, offsets = group["tokens"][:].tobytes(), group["offsets"][:]
    return [tokens[begin:end] for begin, end in zip(offsets[:-1], offsets[1:])]


def main(path):
    if seal_is_intact(path) is False:
        sys.exit(f"{path} is damaged: its seal does not match")
    with h5py.File(path, "r") as file:
        if file.attrs.get("format") != "maskgrad-checkpoint" or file.attrs["format_version"] not in (1, 2):
            sys.exit(f"{path} is not a maskgrad checkpoint of version 1 or 2")
        if file.attrs.get("complete") != 1:
            sys.exit(f"{path} is half-written")
        for name, value in file["config"].attrs.items():
            print(f"{name} = {value}")
        for name, dataset in file["model"].items():
            values = dataset[:]
            print(f"{name} {values.shape} {values.dtype} {np.linalg.norm(values.astype(np.float64)):.6g}")
        if "tokenizer" in file:
            print("tokens", *read_tokens(file["tokenizer"])[:8])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
