#!/bin/bash
# docs/read_checkpoint.py, which has only h5py, reads the same as maskgrad inspect --json.
set -eu
program=$1 source=$2
python=/usr/bin/python3
if ! "$python" -c 'import h5py' 2> /dev/null; then
    echo "SKIPPED: read_checkpoint needs h5py for $python (Debian: python3-h5py)"
    exit 77
fi
file=$source/tests/checkpoints/version-1.h5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" "$source/docs/read_checkpoint.py" "$file" > "$folder/theirs"
"$program" inspect --json "$file" > "$folder/ours"
"$python" - "$folder/theirs" "$folder/ours" << 'END'
import json, re, sys

lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
ours = json.load(open(sys.argv[2], encoding="utf-8"))
config = dict(line.split(" = ") for line in lines if " = " in line)
of_version_2 = {"positions": True, "mask_kind": 0, "documents": False, "document_end": 0, "positions_run_on": False}
for name, value in of_version_2.items():  # no attributes of version 1, and read as what they were then
    assert ours["config"].pop(name) == value, name
assert config.keys() == ours["config"].keys(), config
for name, value in config.items():
    assert float(value) == float(ours["config"][name]), (name, value)
parameters = [line for line in lines if "float32" in line]
assert len(parameters) == len(ours["parameters"])
for line, parameter in zip(parameters, ours["parameters"]):  # in the model's order
    name, shape, norm = re.fullmatch(r"(\S+) \((.*)\) float32 (\S+)", line).groups()
    assert name == parameter["name"], line
    assert [int(n) for n in shape.split(",") if n] == parameter["shape"], line
    assert abs(float(norm) - parameter["norm"]) < 1e-5 * parameter["norm"], line
assert lines[-1] == r"tokens b'\n' b' ' b'a' b'\xc3\xa7' b'\xf0\x9f\x98\x80'", lines[-1]
END

# The seal as documented: one changed byte, and the script refuses too.
cp "$file" "$folder/damaged.h5"
printf '\377' | dd of="$folder/damaged.h5" bs=1 seek=100000 conv=notrunc status=none
if "$python" "$source/docs/read_checkpoint.py" "$folder/damaged.h5" > /dev/null 2> "$folder/err"; then
    echo 'FAILED: the script reads a damaged file' >&2
    exit 1
fi
grep -q 'is damaged' "$folder/err"
