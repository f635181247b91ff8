#!/usr/bin/env bash
# Damaged checkpoints and GPT-2 folders with right checksums, for some seconds: each is a sentence or loads; nothing crashes
# or hangs. tests/fuzz/reseal.py runs for as long as you like.
set -euo pipefail
program=$1
source=$2
python=/usr/bin/python3
if ! "$python" -c 'import h5py' 2>/dev/null; then
    echo "SKIPPED: this needs h5py for $python (Debian: python3-h5py)"
    exit 77
fi
"$python" "$source/tests/fuzz/import_members.py" "$program" "$source/tests/data/gpt2-like/text"
"$python" "$source/tests/fuzz/reseal.py" "$program" 10
