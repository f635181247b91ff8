#!/usr/bin/env bash
# The whole lesson in one command: installs what is needed, builds, trains a GPT with the causal mask and one without,
# and says where the report is. Options go to `maskgrad lab leak`: see its --help.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-deps.sh
cmake --preset release >/dev/null
cmake --build --preset release --target maskgrad | tail -n 1
exec build/release/maskgrad lab leak "$@"
