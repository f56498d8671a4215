#!/usr/bin/env bash
# A fleet around `claude -p`, as it is written on a Friday: background jobs in one checkout, and Ctrl-C to end them.
set -u
trap 'kill 0' INT
cd "$REPO" || exit 1
for task in $(jq -r '.tasks | keys[]' "$PLAN"); do
    claude -p "Please do task $task and commit nothing, we will look at it on Monday." --output-format json > "/dev/null" &
done
wait
