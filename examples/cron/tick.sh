#!/usr/bin/env bash
# A coordinator without a process: cron starts it, it looks at what is on disk, starts what is missing, and is gone.
#
#   tick.sh fire | abort
#
# Workers are `claude -p` in sessions of their own, which outlive the firing that started them. On disk are the fleet's
# state (running, stopping or stopped), the manifest, and what each worker printed. Needs bash, git, jq and flock. Reads
# REPO TREES CONTROL PLAN MANIFEST, and GRACE and KILL_AFTER in seconds.
set -u
STATE=$CONTROL/fleet

tell() { echo "$1" > "$STATE.new" && mv "$STATE.new" "$STATE"; } # whole or not at all
stopped() { local state=; read -r state 2>/dev/null < "$STATE"; [ "$state" = stopping ] || [ "$state" = stopped ]; }
ticks() { cut -d' ' -f22 "/proc/$1/stat" 2>/dev/null; } # start time of a pid, so that a recycled one is not ours

# Lines "pid task" of the manifest's workers that live.
alive() {
    [ -e "$MANIFEST" ] || return 0
    jq -r --arg run "$RUN_ID" 'select(.run_id == $run) | "\(.pid) \(.started_ticks) \(.task_id)"' "$MANIFEST" |
        while read -r pid ticks task; do
            [ "$(ticks "$pid")" = "$ticks" ] && [ "$(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null)" != Z ] && echo "$pid $task"
        done
}

nobody() { [ -z "$(alive)" ]; }

# Wait until a condition holds, for at most so many seconds.
wait_for() {
    local until=$(($(date +%s%N) + $(jq -n "$1 * 1e9 | floor")))
    shift
    until "$@"; do
        [ "$(date +%s%N)" -ge "$until" ] && return 1
        sleep 0.03
    done
}

spawn() {
    local task=$1 attempt=$2 tree=$TREES/$1 pid
    [ -e "$tree" ] || git -C "$REPO" worktree add -q -b "agent/$RUN_ID/$task" "$tree" main || return 1
    cd "$tree" || return 1
    # Not the lock: whoever holds it is taken for a firing that is not over.
    TASK_ID=$task ATTEMPT=$attempt setsid claude -p "Do $task." < /dev/null > "$CONTROL/said-$task" 2>&1 9>&- &
    pid=$!
    jq -nc --arg run "$RUN_ID" --arg task "$task" --argjson attempt "$attempt" --argjson pid "$pid" \
        --arg ticks "$(ticks $pid)" --arg host "$(uname -n)" --arg branch "agent/$RUN_ID/$task" --arg tree "$tree" \
        --arg at "$(date -u +%FT%TZ)" '{run_id: $run, task_id: $task, attempt: $attempt, pid: $pid,
          started_ticks: $ticks, host: $host, branch: $branch, worktree: $tree, started_at: $at}' >> "$MANIFEST"
}

fire() {
    stopped && exit 0
    exec 9> "$CONTROL/lock"
    flock -n 9 || exit 0 # the last firing is not over
    stopped && exit 0    # an abort that came between waits for the lock, and then looks whom it has to end
    [ -e "$STATE" ] || tell running
    local here=" $(alive | cut -d' ' -f2 | tr '\n' ' ')" task before
    for task in $(jq -r '.tasks | keys[]' "$PLAN"); do
        case $here in *" $task "*) continue ;; esac
        grep -qs "all steps" "$CONTROL/said-$task" && continue
        stopped && exit 0
        before=$(grep -cs "\"task_id\":\"$task\"" "$MANIFEST")
        spawn "$task" $((${before:-0} + 1))
    done
}

# The state comes first: whatever ends from here on, no firing starts it again.
abort() {
    tell stopping
    exec 9> "$CONTROL/lock"
    flock 9
    if ! wait_for "$GRACE" nobody; then
        alive | while read -r pid _; do kill -TERM "$pid"; done
        if ! wait_for "$KILL_AFTER" nobody; then
            alive | while read -r pid task; do
                kill -KILL -- "-$pid" # it leads a session, so its group is its tools and itself
                jq -nc --arg run "$RUN_ID" --argjson pid "$pid" --arg task "$task" --arg branch "agent/$RUN_ID/$task" \
                    '{what: "killed dirty", run_id: $run, pid: $pid, task: $task, branch: $branch}' >> "$CONTROL/killed.jsonl"
            done
            wait_for 5 nobody
        fi
    fi
    local dirty=$(for tree in "$TREES"/*/; do [ -n "$(git -C "$tree" status --porcelain)" ] && echo "${tree%/}"; done | jq -Rnc '[inputs]')
    local left=$(alive | jq -Rnc '[inputs | split(" ") | {pid: (.[0] | tonumber), task: .[1]}]')
    [ "$left" = "[]" ] && tell stopped
    jq -nc --argjson alive "$left" --argjson dirty "$dirty" --arg state "$(cat "$STATE")" \
        '{state: $state, sweep: {alive: $alive, dirty: $dirty}}'
    [ "$left" = "[]" ]
}

"$@"
