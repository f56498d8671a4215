#!/usr/bin/env bash
# What cron does with `* * * * * tick.sh`: start it anew every PERIOD seconds, whether or not the last one is over.
# It knows nothing of the fleet, is told nothing of an abort, and goes on firing.
set -u
exec {nothing}<> <(:) # a pipe that says nothing, to wait at: a `sleep` would be one more process
while :; do
    read -r uptime _ < /proc/uptime && echo "$uptime" >> "$CONTROL/cron.log"
    "${0%/*}/tick.sh" fire {nothing}>&- &
    read -rt "$PERIOD" -u "$nothing"
done
