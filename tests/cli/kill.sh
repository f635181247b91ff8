#!/usr/bin/env bash
# Runs that are killed twenty times end with the bits of one that is not.
exec "$2/scripts/kill-test.sh" 20 "$1"
