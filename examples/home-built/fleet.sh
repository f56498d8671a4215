#!/usr/bin/env bash
# A fleet around `claude -p`, as a careful team writes it: a worktree and a branch for each worker, a manifest, a control
# file that is looked at between two calls, the ladder, a sweep by the manifest, and a redirect that writes its table first.
#
#   fleet.sh start | pause | resume | redirect FILE | abort | status
#
# Needs bash, git and jq. Reads REPO TREES CONTROL PLAN MANIFEST, and GRACE and KILL_AFTER in seconds.
set -u
shopt -s nullglob
mkdir -p "$CONTROL"/{state,delta,drop}

say() { printf '%s' "$2" > "$1.new" && mv "$1.new" "$1"; } # whole or not at all
tell() { say "$CONTROL/state/fleet" "$1"; }
ticks() { cut -d' ' -f22 "/proc/$1/stat" 2>/dev/null; }      # start time of a pid, so that a recycled one is not ours

# One worker: a call, a checkpoint, a look, until it is told to leave. Its step is the number of its checkpoints.
work() {
    local task=$1 said
    cd "$TREES/$task" || exit 1
    local step=$(git rev-list --count "main..HEAD")
    while :; do
        [ -e "$CONTROL/drop/$task" ] && exit 0
        case $(< "$CONTROL/run") in
            STOP) exit 0 ;;
            HOLD) say "$CONTROL/state/$task" parked; sleep 0.05; continue ;;
        esac
        say "$CONTROL/state/$task" working
        said=$(claude -p "Do the next step of $task.
$(cat "$CONTROL/delta/$task" 2>/dev/null)" --max-turns 1) || exit 1
        step=$((step + 1))
        git add -A && git commit -q --allow-empty -m "wip: $task $step" || exit 1
        case $said in *"all steps"*) exit 0 ;; esac
    done
}

spawn() {
    local task=$1 pid
    git -C "$REPO" worktree add -q -b "agent/$RUN_ID/$task" "$TREES/$task" main || return 1
    TASK_ID=$task ATTEMPT=1 setsid "$0" work "$task" < /dev/null &
    pid=$!
    jq -nc --arg run "$RUN_ID" --arg task "$task" --argjson pid "$pid" --arg ticks "$(ticks $pid)" --arg host "$(uname -n)" \
        --arg branch "agent/$RUN_ID/$task" --arg tree "$TREES/$task" --arg at "$(date -u +%FT%TZ)" \
        '{run_id: $run, task_id: $task, attempt: 1, pid: $pid, started_ticks: $ticks, host: $host, branch: $branch,
          worktree: $tree, started_at: $at}' >> "$MANIFEST"
}

# Lines "pid task" of the manifest's workers that live; never by name, and never a recycled pid.
alive() {
    [ -e "$MANIFEST" ] || return 0
    jq -r --arg run "$RUN_ID" 'select(.run_id == $run) | "\(.pid) \(.started_ticks) \(.task_id)"' "$MANIFEST" |
        while read -r pid ticks task; do
            [ "$(ticks "$pid")" = "$ticks" ] && [ "$(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null)" != Z ] && echo "$pid $task"
        done
}

# Wait until a condition holds, for at most so many seconds.
wait_for() {
    local until=$(($(date +%s%N) + $(jq -n "$1 * 1e9 | floor")))
    shift
    until "$@"; do
        [ "$(date +%s%N)" -ge "$until" ] && return 1
        sleep 0.03
    done
}

nobody() { [ -z "$(alive)" ]; }
gone() { ! alive | grep -q " $1\$"; }
all_are() {
    local state=$1 task
    for task in $(alive | cut -d' ' -f2); do
        [ "$(cat "$CONTROL/state/$task" 2>/dev/null)" = "$state" ] || return 1
    done
}

start() {
    say "$CONTROL/run" RUN; tell running
    for task in $(jq -r '.tasks | keys[]' "$PLAN"); do spawn "$task"; done
    wait
    [ "$(cat "$CONTROL/state/fleet")" = aborted ] && exit 3
    exit 4
}

pause() {
    say "$CONTROL/run" HOLD; tell paused
    wait_for 60 all_are parked && echo '{"state": "paused"}' || { echo '{"state": "pausing"}'; exit 1; }
}

resume() {
    say "$CONTROL/run" RUN; tell running
    wait_for 60 all_are working && echo '{"state": "running"}' || { echo '{"state": "resuming"}'; exit 1; }
}

# Keep, modify or drop for each live worker, by comparing files; the table is there before anybody is told.
redirect() {
    local live=$(alive | cut -d' ' -f2 | jq -Rnc '[inputs]')
    jq -n --slurpfile said "$1" --slurpfile plan "$PLAN" --argjson live "$live" '
        $said[0] as $new | $plan[0].tasks as $tasks
        | [ $live[] | . as $task | ($tasks[$task].files // []) as $files
            | { key: $task,
                value: (if $files - $new.drops == [] then "drop"
                        elif any($new.changes[]; .paths as $p | any($files[]; . as $f | $p | index($f))) then "modify"
                        else "keep" end) } ] | from_entries' > "$CONTROL/table.new" || exit 1
    mv "$CONTROL/table.new" "$CONTROL/table-$(date +%s%N).json"
    local table=$(ls "$CONTROL"/table-*.json | tail -1) task
    for task in $(jq -r 'to_entries[] | select(.value == "modify") | .key' "$table"); do
        jq -r --arg task "$task" --slurpfile plan "$PLAN" '$plan[0].tasks[$task].files as $files
            | .changes[] | select(.paths as $p | any($files[]; . as $f | $p | index($f))) | .delta' "$1" > "$CONTROL/delta.new"
        mv "$CONTROL/delta.new" "$CONTROL/delta/$task"
    done
    for task in $(jq -r 'to_entries[] | select(.value == "drop") | .key' "$table"); do
        : > "$CONTROL/drop/$task"
        wait_for 60 gone "$task" || exit 1
        git -C "$REPO" tag "abandoned/$RUN_ID/$task" "agent/$RUN_ID/$task"
    done
    jq '.tasks += (.adds // {})' "$PLAN" > "$CONTROL/plan.json"
    for task in $(jq -r '.adds[].task' "$1"); do STOPDRILL_PLAN=$CONTROL/plan.json spawn "$task"; done
    echo '{"state": "redirected"}'
}

abort() {
    say "$CONTROL/run" STOP; tell aborting
    if ! wait_for "$GRACE" nobody; then
        alive | while read -r pid _; do kill -TERM "$pid"; done
        if ! wait_for "$KILL_AFTER" nobody; then
            alive | while read -r pid task; do
                kill -KILL -- "-$pid" # the worker leads its own session, so its group is its tools and itself
                jq -nc --arg run "$RUN_ID" --argjson pid "$pid" --arg task "$task" --arg branch "agent/$RUN_ID/$task" \
                    '{what: "killed dirty", run_id: $run, pid: $pid, task: $task, branch: $branch}' >> "$CONTROL/killed.jsonl"
            done
            wait_for 5 nobody
        fi
    fi
    local dirty=$(for tree in "$TREES"/*/; do [ -n "$(git -C "$tree" status --porcelain)" ] && echo "${tree%/}"; done | jq -Rnc '[inputs]')
    local left=$(alive | jq -Rnc '[inputs | split(" ") | {pid: (.[0] | tonumber), task: .[1]}]')
    [ "$left" = "[]" ] && tell aborted
    jq -nc --argjson alive "$left" --argjson dirty "$dirty" --arg state "$(cat "$CONTROL/state/fleet")" \
        '{state: $state, sweep: {alive: $alive, dirty: $dirty}}'
    [ "$left" = "[]" ]
}

"$@"
