#!/usr/bin/env python3
"""GPT-2 folders with one member made hostile by hand: each is imported or refused with one sentence, soon.

    import_members.py PROGRAM FOLDER

FOLDER is one such as tests/data/gpt2-like/text. Standard library only.
"""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

SECONDS = 60


def hostile_headers(header):
    """Name and header of model.safetensors; a number instead of a header is the length that the file claims."""
    first = next(name for name in header if name != "__metadata__")
    own = header[first]

    def tensor(**changes):
        return json.dumps({**header, first: {**own, **changes}})

    begin, end = own["data_offsets"]
    for length in (0, 2**31, 2**63, 2**64 - 1):
        yield f"claims {length} bytes", length
    for text in ("[]", "null", " " * 100, "[" * 100000, '{"a":' * 5000, "\ufeff" + json.dumps(header),
                 json.dumps(header) + " x", json.dumps(header)[:-1] + "," + json.dumps({first: own})[1:]):
        yield f"is {text[:20]!r} ...", text
    for offsets in ([0.0, float(end)], [-4, end], [2**63 - 1, 2**63 - 1], [0, 2**64], [end, begin], ["0", "4"], [4, end + 4],
                    [0], {}, None):
        yield f"data_offsets {offsets}", tensor(data_offsets=offsets)
    for shape in ([2**32, 2**32], [-1, -11], [0, 4], [1] * 10000, {"a": 1}, [True, 4], None):
        yield f"shape {str(shape)[:20]}", tensor(shape=shape)
    for dtype in ("F64", "F8_E4M3", "", None, 7, "F" * 1000000):
        yield f"dtype {str(dtype)[:20]}", tensor(dtype=dtype)
    for name in ("", first + "\0", "transformer." + first, "x" * 100000):
        yield f"another tensor {name[:20]!r}", json.dumps({**header, name: own})
    yield "a tensor is a string", json.dumps({**header, first: "x"})
    yield "20,000 empty tensors", json.dumps(
        {**header, **{f"x{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(20000)}})


def hostile_configs(config):
    for key in ("n_head", "n_layer", "n_embd", "vocab_size", "n_positions", "layer_norm_epsilon"):
        for value in (0, -2, 2**31, 2**62, 10**30, 1.5, "2", True, None, [], {}):
            yield f"{key} {value}", json.dumps({**config, key: value})
    for key, value in (("model_type", 7), ("activation_function", [1]), ("n_inner", 16.0), ("scale_attn_weights", "false"),
                       ("tie_word_embeddings", False)):
        yield f"{key} {value}", json.dumps({**config, key: value})
    text = json.dumps(config)
    for other in ("", "[1]", "[" * 90000, "\ufeff" + text, text + "\0", text[:-1] + ', "n_layer": 7}', "NaN"):
        yield f"is {other[:20]!r} ...", other


def hostile_vocabularies(vocab):
    first, second = list(vocab)[:2]
    for value in (-1, 2**63 - 1, 0.5, "0", None, vocab[second]):
        yield f"id {value}", json.dumps({**vocab, first: value})
    for text in ("{}", "[]", '{"a":' * 50000, '{"\\ud800": 0}', '{"\\u0000": 0}', '{"!": 1e400}', '{"!": 0, "!": 0}',
                 json.dumps({f"t{i}": i for i in range(300000)})):
        yield f"is {text[:20]!r} ...", text


def hostile_merges(merges):
    lines = merges.split("\n")
    for line in ("a b c", "ab", "zzz qqq", "", " ", "\0", "a " + "b" * 3000000, lines[2]):
        yield f"a line {line[:20]!r}", "\n".join(lines[:3] + [line] + lines[3:])
    yield "tokens that double", "#version: 0.2\n" + "\n".join(f"{'a' * 2**i} {'a' * 2**i}" for i in range(21))
    yield "blank lines", merges.replace("\n", "\n\n")


def members(folder):
    """File, what is wrong with it, its bytes."""
    weights = (folder / "model.safetensors").read_bytes()
    size, = struct.unpack("<Q", weights[:8])
    data = weights[8 + size:]
    for name, header in hostile_headers(json.loads(weights[8:8 + size])):
        claimed = header if isinstance(header, int) else None
        text = weights[8:8 + size] if claimed is not None else header.encode()
        yield "model.safetensors", name, struct.pack("<Q", len(text) if claimed is None else claimed) + text + data
    yield "model.safetensors", "trailing bytes", weights + bytes(1000)
    yield "model.safetensors", "a tensor cut off", weights[:-4]
    for file, make in (("config.json", hostile_configs), ("vocab.json", hostile_vocabularies)):
        for name, text in make(json.loads((folder / file).read_text())):
            yield file, name, text.encode()
    for name, text in hostile_merges((folder / "merges.txt").read_text()):
        yield "merges.txt", name, text.encode()


def fault(program, folder, out):
    """What is wrong with how the program ends; None: nothing."""
    try:
        done = subprocess.run([program, "import", folder, "--out", out], capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"takes more than {SECONDS} seconds"
    last = done.stderr.decode(errors="replace").rstrip("\n").split("\n")[-1]
    if done.returncode not in (0, 1, 2):
        return f"status {done.returncode}: {last}"
    if done.returncode and not last.startswith("maskgrad import: "):
        return f"no sentence: {last}"
    return None


def main():
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    tried = faults = 0
    with tempfile.TemporaryDirectory() as work:
        for file, name, content in members(source):
            folder = pathlib.Path(work, "gpt2")
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for path in source.iterdir():
                shutil.copyfile(path, folder / path.name)
            (folder / file).write_bytes(content)
            wrong = fault(program, folder, pathlib.Path(work, "out.h5"))
            tried += 1
            if wrong:
                faults += 1
                print(f"{file}, {name}: {wrong}")
    print(f"{tried} folders: {faults} faults")
    return 1 if faults or tried < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
