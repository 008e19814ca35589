#!/usr/bin/env bash
# Run one tier of the tests and print how long it took, beside what it may take on two cores
# of 2026 (decides nothing): tier.sh NAME COMMAND…
set -u
name=$1
shift
case $name in
  check) budget=" of 60" ;;
  unit) budget=" of 180" ;;
  stories) budget=" of 240" ;;
  contract) budget=" of 150" ;;
  live) budget=" of 400" ;;
  *) budget="" ;;
esac
start=$SECONDS
"$@"
status=$?
echo "tier $name: $((SECONDS - start)) s$budget, exit $status"
exit $status
