#!/bin/sh
# Starts a run on a SPAK platform with the files of a checkout, waits for it, and ends as it did:
# 0 succeeded, 1 failed, 2 the platform refuses the request, 4 waits for somebody, 5 refused, 6 cancelled or
# SPAK_TIMEOUT is over (the run goes on), 7 the platform does not answer. Needs curl, git and Python 3.
#
# SPAK_URL, SPAK_TEAM, SPAK_SPEC   which platform, and the spec as in the address of its page
# SPAK_TOKEN                       a token; without it the id token of the job is exchanged for one:
#                                  SPAK_ID_TOKEN (GitLab), or GitHub's, for the audience SPAK_AUDIENCE
# SPAK_VERSION  a version's number or a tag      SPAK_FILES     head (the checkout's commit) or none
# SPAK_INPUTS   lines of NAME=VALUE              SPAK_LABELS    labels with blanks between
# SPAK_TIMEOUT  seconds, 3600                    SPAK_JUNIT     the report's file, spak.xml
# SPAK_BUILD    names this job: sent again with the same name, no second run starts
set -eu
: "${SPAK_URL:?is not set}" "${SPAK_TEAM:?is not set}" "${SPAK_SPEC:?is not set}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
url=${SPAK_URL%/}
api=$url/api/v1
say() { printf 'spak: %s\n' "$*" >&2; }

field() { # a member of the last answer
    python3 -c 'import json, sys
found = json.load(open(sys.argv[1])).get(sys.argv[2], "")
print(str(found).lower() if isinstance(found, bool) else found)' "$work/answer" "$1"
}

ask() { # a request; its answer is in $work/answer
    status=$(curl -sS --retry 5 --retry-connrefused -o "$work/answer" -w '%{http_code}' "$@") || {
        say "no answer of $url"
        exit 7
    }
    case $status in
        2??) return ;;
        4??)
            say "$(field detail 2>/dev/null || echo "it answers $status") [$(field code 2>/dev/null || echo "$status")]"
            exit 2
            ;;
    esac
    say "$url answers $status"
    exit 7
}

# ---- sign in

if [ -z "${SPAK_TOKEN:-}" ]; then
    if [ -z "${SPAK_ID_TOKEN:-}" ] && [ -n "${ACTIONS_ID_TOKEN_REQUEST_URL:-}" ]; then
        printf 'Authorization: Bearer %s\n' "$ACTIONS_ID_TOKEN_REQUEST_TOKEN" > "$work/github"
        ask -G -H "@$work/github" --data-urlencode "audience=${SPAK_AUDIENCE:-$url}" "$ACTIONS_ID_TOKEN_REQUEST_URL"
        SPAK_ID_TOKEN=$(field value)
    fi
    if [ -z "${SPAK_ID_TOKEN:-}" ]; then
        say "there is no token: set SPAK_TOKEN, or let the job have id tokens"
        exit 2
    fi
    SPAK_ID_TOKEN=$SPAK_ID_TOKEN python3 -c 'import json, os
print(json.dumps({"team": os.environ["SPAK_TEAM"], "token": os.environ["SPAK_ID_TOKEN"]}))' > "$work/body"
    ask -H 'Content-Type: application/json' --data-binary "@$work/body" "$api/oidc/"
    SPAK_TOKEN=$(field token)
    if [ "${GITHUB_ACTIONS:-}" = true ]; then echo "::add-mask::$SPAK_TOKEN"; fi
fi
printf 'Authorization: Bearer %s\n' "$SPAK_TOKEN" > "$work/header"
team=$api/teams/$SPAK_TEAM

# ---- start

files=none
if [ "${SPAK_FILES:-head}" = head ]; then
    git archive --format=zip -o "$work/files.zip" HEAD
    ask -H "@$work/header" -H 'Content-Type: application/zip' --data-binary "@$work/files.zip" "$team/specs/$SPAK_SPEC/files/"
    files=$(field hash)
fi
FILES=$files python3 -c 'import json, os
given = os.environ.get
inputs = dict(line.split("=", 1) for line in given("SPAK_INPUTS", "").splitlines() if line.strip())
version = given("SPAK_VERSION", "")
body = {"files": given("FILES"), "labels": given("SPAK_LABELS", "").split(), "inputs": inputs}
if version:
    body["version" if version.isdecimal() else "tag"] = int(version) if version.isdecimal() else version
print(json.dumps(body))' > "$work/body"
build=${SPAK_BUILD:-${GITHUB_RUN_ID:-${CI_JOB_ID:-}}/${GITHUB_RUN_ATTEMPT:-}/${GITHUB_JOB:-}/$SPAK_SPEC}
[ "$build" != "///$SPAK_SPEC" ] || build=$(python3 -c 'import uuid; print(uuid.uuid4())')
ask -H "@$work/header" -H 'Content-Type: application/json' -H "Idempotency-Key: $build" \
    --data-binary "@$work/body" "$team/specs/$SPAK_SPEC/runs/"
run=$(field key)
page=$(field html_url)
say "run $run: $page"
if [ -n "${GITHUB_OUTPUT:-}" ]; then printf 'run=%s\nurl=%s\n' "$run" "$page" >> "$GITHUB_OUTPUT"; fi

# ---- wait, report, end as it did

until=$(($(date +%s) + ${SPAK_TIMEOUT:-3600}))
while :; do
    left=$((until - $(date +%s)))
    if [ "$left" -gt 60 ]; then left=60; fi
    if [ "$left" -lt 0 ]; then left=0; fi
    ask --max-time 120 -H "@$work/header" "$team/runs/$run/?wait=$left"
    state=$(field state)
    case $(field ended)$state in true* | *waiting | *paused) break ;; esac
    if [ "$left" -eq 0 ]; then
        say "run $run: $state; SPAK_TIMEOUT is over, and it goes on"
        exit 6
    fi
    sleep 1
done
if [ -n "${GITHUB_OUTPUT:-}" ]; then printf 'state=%s\n' "$state" >> "$GITHUB_OUTPUT"; fi
if [ "$(field ended)" = true ]; then
    say "run $run: $state"
    ask -H "@$work/header" "$team/runs/$run/junit.xml"
    cp "$work/answer" "${SPAK_JUNIT:-spak.xml}"
else
    say "run $run is $state: somebody has to look at it: $page"
fi
case $state in
    succeeded) exit 0 ;;
    failed) exit 1 ;;
    waiting | paused) exit 4 ;;
    refused) exit 5 ;;
esac
exit 6
