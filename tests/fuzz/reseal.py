#!/usr/bin/env python3
"""Damage checkpoints and GPT-2 folders, make their checksums right again, and see what the program says.

    tests/fuzz/reseal.py PROGRAM SECONDS [SEED]

A seal is a checksum and not a signature, so a hostile file has a right one: most of what this makes is sealed again, and the
checksums of HDF5's own object headers are repaired too. Each file is read by `inspect --verify`, `generate` or `import
--dry-run`, with a time limit. A table by kind of damage counts what came of it:

    files      tried
    sentences  exit 1 or 2 with one line on stderr that begins with the program's name
    accepted   exit 0
    crashes    a signal, exit 70 (a failed check), or another status
    hangs      no end within TIME_LIMIT seconds, and none within five times that at a second try
    slow, fat  took more than 10 seconds, or more than 1.2 GB

SIGINT and SIGTERM end it early, with the table. Exits 1 if anything crashed, hung or was silent, and keeps such files in
/tmp. The same SEED makes the same files.
"""
import collections
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

TIME_LIMIT = 60
SEAL = 512


def sealed(data):
    body = bytes(data[SEAL:])
    text = "maskgrad seal 1\nbytes %020d\ncrc32 %08x\n" % (len(data), zlib.crc32(body))
    return text.encode().ljust(SEAL, b"\0") + body


def unsealed(data):
    return bytes(SEAL) + bytes(data[SEAL:])


# ---- Jenkins's lookup3, which guards HDF5's newer metadata ----

def lookup3(data):
    mask = 0xFFFFFFFF
    rot = lambda x, k: (x << k | x >> 32 - k) & mask
    a = b = c = (0xDEADBEEF + len(data)) & mask
    data = bytes(data)
    while len(data) > 12:
        x, y, z = struct.unpack_from("<III", data)
        a, b, c = (a + x) & mask, (b + y) & mask, (c + z) & mask
        a = (a - c) & mask ^ rot(c, 4); c = (c + b) & mask
        b = (b - a) & mask ^ rot(a, 6); a = (a + c) & mask
        c = (c - b) & mask ^ rot(b, 8); b = (b + a) & mask
        a = (a - c) & mask ^ rot(c, 16); c = (c + b) & mask
        b = (b - a) & mask ^ rot(a, 19); a = (a + c) & mask
        c = (c - b) & mask ^ rot(b, 4); b = (b + a) & mask
        data = data[12:]
    if not data:
        return c
    x, y, z = struct.unpack("<III", data.ljust(12, b"\0"))
    a, b, c = (a + x) & mask, (b + y) & mask, (c + z) & mask
    c = (c ^ b) - rot(b, 14) & mask
    a = (a ^ c) - rot(c, 11) & mask
    b = (b ^ a) - rot(a, 25) & mask
    c = (c ^ b) - rot(b, 16) & mask
    a = (a ^ c) - rot(c, 4) & mask
    b = (b ^ a) - rot(a, 14) & mask
    return (c ^ b) - rot(b, 24) & mask


def object_headers(data):
    """(begin, end of what is summed) of the superblock and of every object header of version 2."""
    found = []
    at = data.find(b"\x89HDF\r\n\x1a\n")
    if at >= 0 and data[at + 8] in (2, 3):
        found.append((at, at + 44))
    at = data.find(b"OHDR")
    while at >= 0:
        flags = data[at + 5]
        place = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
        width = 1 << (flags & 3)
        end = place + width + int.from_bytes(data[place:place + width], "little")
        if end + 4 <= len(data):
            found.append((at, end))
        at = data.find(b"OHDR", at + 4)
    return found


# ---- Damage: each takes a random source and a bytearray, and returns bytes ----

def flip(r, data, low, high, n):
    for _ in range(n):
        data[r.randrange(low, high)] ^= 1 << r.randrange(8)


def put_extreme(r, data, low, high):
    width = r.choice((1, 2, 4, 8))
    value = r.choice((0, 1, -1, 1 << 8 * width - 1, (1 << 8 * width - 1) - 1, 1 << r.randrange(8 * width), len(data),
                      r.randrange(1 << 8 * width))) & (1 << 8 * width) - 1
    at = r.randrange(low, max(low + 1, high - width))
    data[at:at + width] = value.to_bytes(width, "little")


def bits(r, data):
    flip(r, data, SEAL, len(data), r.choice((1, 1, 2, 4, 8, 64)))
    return sealed(data)


def bits_without_seal(r, data):
    flip(r, data, SEAL, len(data), r.choice((1, 1, 2, 4)))
    return unsealed(data)


def extremes(r, data):
    for _ in range(r.choice((1, 1, 2, 4))):
        put_extreme(r, data, SEAL, len(data))
    return sealed(data)


def headers(r, data):
    begin, end = r.choice(object_headers(data))
    for _ in range(r.choice((1, 1, 2, 3))):
        if r.random() < 0.5:
            flip(r, data, begin + 4, end, 1)
        else:
            put_extreme(r, data, begin + 4, end)
    data[end:end + 4] = struct.pack("<I", lookup3(data[begin:end]))
    return sealed(data)


def truncated(r, data):
    return sealed(data[:r.randrange(SEAL, len(data))])


def pieces_moved(r, data):
    n = r.choice((8, 32, 128, 512, 2048))
    a, b = r.randrange(SEAL, len(data) - n), r.randrange(SEAL, len(data) - n)
    data[a:a + n] = data[b:b + n]
    return sealed(data)


def any_bits(r, data):
    flip(r, data, 0, len(data), r.choice((1, 1, 2, 4, 8, 64)))
    return bytes(data)


def any_extremes(r, data):
    for _ in range(r.choice((1, 1, 2, 4))):
        put_extreme(r, data, 0, len(data))
    return bytes(data)


def any_end(r, data):
    return bytes(data[:r.randrange(len(data))])


def header_bits(r, data):
    length = 8 + int.from_bytes(data[:8], "little")
    flip(r, data, 0, length, r.choice((1, 1, 2, 4)))
    return bytes(data)


def text_damage(r, data):
    for _ in range(r.choice((1, 1, 2, 4))):
        at = r.randrange(len(data) + 1)
        what = r.randrange(4)
        if what == 0 and at < len(data):
            data[at] = r.randrange(256)
        elif what == 1:
            del data[at:at + r.choice((1, 2, 16))]
        elif what == 2:
            data[at:at] = r.choice((b"{", b"[", b"-1", b"1e999", b"99999999999999999999", b"\0", b"\xff", b'"', b"null"))
        else:
            data[at:at] = data[at:at + r.choice((1, 8, 64))] * r.choice((1, 2, 100))
    return bytes(data)


# ---- Files to damage ----

def write_seeds(program, folder):
    """What is damaged, by name: a checkpoint as train writes it, one of GPT-2's tokenizer, and the files of a GPT-2."""
    with open(folder + "/text.txt", "w") as file:
        file.write("the cat sat on the mat and the dog sat on the log\n" * 40)
    run([program, "train", "--data", folder + "/text.txt", "--n-layer", "1", "--n-head", "2", "--n-embd", "8",
         "--block-size", "8", "--batch-size", "2", "--max-iters", "2", "--eval-iters", "1", "--out-dir", folder + "/run"])
    names = write_gpt2(folder + "/gpt2")
    run([program, "import", folder + "/gpt2", "--out", folder + "/bpe.h5"])
    seeds = {"checkpoint": folder + "/run/checkpoint.h5", "checkpoint, gpt2": folder + "/bpe.h5"}
    seeds.update({name: folder + "/gpt2/" + name for name in names})
    keras = write_keras(folder + "/gpt2")
    if keras:
        seeds["tf_model.h5"] = keras
    return {name: bytearray(open(path, "rb").read()) for name, path in seeds.items()}


def shapes(V=258, T=8, C=8):
    yield "wte.weight", (V, C)
    yield "wpe.weight", (T, C)
    for name, shape in (("ln_1.weight", (C,)), ("ln_1.bias", (C,)), ("attn.c_attn.weight", (C, 3 * C)),
                        ("attn.c_attn.bias", (3 * C,)), ("attn.c_proj.weight", (C, C)), ("attn.c_proj.bias", (C,)),
                        ("ln_2.weight", (C,)), ("ln_2.bias", (C,)), ("mlp.c_fc.weight", (C, 4 * C)),
                        ("mlp.c_fc.bias", (4 * C,)), ("mlp.c_proj.weight", (4 * C, C)), ("mlp.c_proj.bias", (C,))):
        yield "h.0." + name, shape
    yield "ln_f.weight", (C,)
    yield "ln_f.bias", (C,)


def numbers(shape):
    n = 1
    for size in shape:
        n *= size
    return struct.pack("<%df" % n, *(((7 * i) % 13 - 6) / 10 for i in range(n)))


def write_gpt2(folder):
    import json
    os.mkdir(folder)
    with open(folder + "/config.json", "w") as file:
        json.dump({"model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 8, "n_positions": 8, "vocab_size": 258}, file)
    with open(folder + "/merges.txt", "w") as file:
        file.write("#version: 0.2\nt h\n")
    header, data = {}, b""
    for name, shape in shapes():
        bytes_ = numbers(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    with open(folder + "/model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)
    return ["config.json", "merges.txt", "model.safetensors"]


def write_keras(folder):
    try:
        import h5py
        import numpy
    except ImportError:
        print("without h5py and numpy: no tf_model.h5", file=sys.stderr)
        return None
    ends = {"weight": "weight:0", "bias": "bias:0"}
    with h5py.File(folder + "/tf_model.h5", "w") as file:
        for name, shape in shapes():
            parts = name.split(".")
            if parts[0] == "h":
                parts[0:2] = ["h_._" + parts[1]]
            last = ends[parts[-1]]
            if "ln_" in parts[-2]:
                last = {"weight": "gamma:0", "bias": "beta:0"}[parts[-1]]
            value = numpy.frombuffer(numbers(shape), "<f4").reshape(shape)
            how = {"chunks": True, "compression": "gzip", "shuffle": True, "fletcher32": True} if "mlp" in name else {}
            file.create_dataset("/transformer/tfgpt2/transformer/" + "/".join(parts[:-1]) + "/" + last, data=value, **how)
    return folder + "/tf_model.h5"


KINDS = [(name, damage) for name in ("checkpoint", "checkpoint, gpt2")
         for damage in (bits, bits_without_seal, extremes, headers, headers, truncated, pieces_moved)]
KINDS += [("tf_model.h5", damage) for damage in (any_bits, any_bits, any_extremes, any_extremes, any_end)]
KINDS += [("model.safetensors", damage) for damage in (header_bits, any_extremes, any_end)]
KINDS += [("config.json", text_damage), ("merges.txt", text_damage)]


# ---- What comes of it ----

def run(command, limit=TIME_LIMIT):
    """(exit status or None, stderr, seconds, largest KB of it and its children)"""
    begin = time.time()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                                   start_new_session=True,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        status, usage = None, None
        while time.time() - begin < limit:
            pid, code, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                status = os.waitstatus_to_exitcode(code)
                process.returncode = status
                break
            time.sleep(0.002)
        else:
            process.kill()
            process.wait()
        errors.seek(0)
        return status, errors.read().decode("utf-8", "replace"), time.time() - begin, usage.ru_maxrss if usage else 0


def verdict(status, stderr):
    lines = stderr.rstrip("\n").split("\n")
    if status is None:
        return "hangs"
    if status == 0:
        return "accepted"
    if status in (1, 2) and lines[-1].startswith("maskgrad "):
        return "sentences"
    return "crashes"


def read_commands(r, program, name, path, folder):
    if name.startswith("checkpoint"):
        return r.choice(([program, "inspect", "--verify", path], [program, "inspect", "--json", path],
                         [program, "generate", path, "--max-new-tokens", "3", "--seed", "1"]))
    return [program, "import", "--dry-run", folder]


def prepare(name, data, place, gpt2):
    """Put a damaged file where the program will look for it; a folder has links to what is whole."""
    if name.startswith("checkpoint"):
        path = place + "/victim.h5"
    else:
        for other in ("config.json", "merges.txt", "model.safetensors", "tf_model.h5", "victim.h5"):
            if os.path.lexists(place + "/" + other):
                os.remove(place + "/" + other)
        for other in ("config.json", "merges.txt") + (() if name == "tf_model.h5" else ("model.safetensors",)):
            if other != name:
                os.symlink(gpt2 + "/" + other, place + "/" + other)
        path = place + "/" + name
    with open(path, "wb") as file:
        file.write(data)
    return path


def main():
    program, seconds = os.path.abspath(sys.argv[1]), float(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    stopped = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.append(True))
    r = random.Random(seed)
    counts = collections.defaultdict(collections.Counter)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        seeds = write_seeds(program, folder)
        kinds = [(name, damage) for name, damage in KINDS if name in seeds]
        place = folder + "/place"
        os.mkdir(place)
        begin = time.time()
        n = 0
        while time.time() - begin < seconds and not stopped:
            name, damage = kinds[n % len(kinds)]
            n += 1
            path = prepare(name, damage(r, bytearray(seeds[name])), place, folder + "/gpt2")
            command = read_commands(r, program, name, path, place)
            status, stderr, took, kilobytes = run(command)
            if status is None:  # perhaps the machine was busy
                status, stderr, took, kilobytes = run(command, 5 * TIME_LIMIT)
            what = verdict(status, stderr)
            row = counts[name, damage.__name__.replace("_", " ")]
            row["files"] += 1
            row[what] += 1
            row["slow"] += took > 10
            row["fat"] += kilobytes > 1200000
            row["by the child"] += "HDF5 crashes" in stderr or "did not finish reading" in stderr or "gives up" in stderr
            if what in ("crashes", "hangs"):
                bad += 1
                kept = "/tmp/maskgrad-%s-%d-%d-%s" % (what, seed, n, os.path.basename(path))
                os.replace(path, kept)
                print("%s: %s of %s: status %s, %s\n  %s" % (what, damage.__name__, name, status, kept, stderr[-300:]),
                      file=sys.stderr)
    columns = ("files", "sentences", "accepted", "crashes", "hangs", "slow", "fat", "by the child")
    print("| file | damage | " + " | ".join(columns) + " |")
    print("|---|---|" + "---|" * len(columns))
    total = collections.Counter()
    for (name, damage), row in counts.items():
        print("| %s | %s | %s |" % (name, damage, " | ".join(str(row[c]) for c in columns)))
        total.update(row)
    print("| all | | " + " | ".join(str(total[c]) for c in columns) + " |")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
