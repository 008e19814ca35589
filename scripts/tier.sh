#!/usr/bin/env bash
# Run one tier of the tests and print how long it took: tier.sh NAME COMMAND…
set -u
name=$1
shift
start=$SECONDS
"$@"
status=$?
echo "tier $name: $((SECONDS - start)) s, exit $status"
exit $status
