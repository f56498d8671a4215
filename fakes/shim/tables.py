"""What each CLI's command line means, as one small table each: meaning to the flags that have it.

Meanings without a value: `print` (asks for one turn, and says nothing else), `json` (lines of JSON), `continue`,
`switch` (known and without effect here), `version`, `help`. With one: `prompt`, `prompt-file`, `cwd`, `format`,
`session`, `turns`, `last-message`, `value` (no effect here). `resume` takes one when one follows, `many` all that
follow. `run` are words that introduce a prompt (`codex exec`), `manage` those of commands that aren't about prompts.
`rest` says what words without a flag are: the first is the prompt, all together are it, or they are `files`.

The tables hold what scripts use, not all there is: a flag that is missing here is accepted and recorded.
"""

Table = dict[str, str]

CLAUDE: Table = {
    "print": "-p --print",
    "format": "--output-format",
    "session": "--session-id",
    "resume": "-r --resume",
    "continue": "-c --continue",
    "turns": "--max-turns",
    "value": "--model --fallback-model --permission-mode --input-format --append-system-prompt --system-prompt "
    "--system-prompt-file --append-system-prompt-file --settings --setting-sources --agents --agent --effort "
    "--permission-prompt-tool --json-schema --max-budget-usd --debug-file --name -n --plugin-dir",
    "many": "--allowedTools --allowed-tools --disallowedTools --disallowed-tools --tools --mcp-config --add-dir "
    "--betas",
    "switch": "--verbose --dangerously-skip-permissions --allow-dangerously-skip-permissions --strict-mcp-config "
    "--include-partial-messages --replay-user-messages --fork-session --no-session-persistence --ide --debug -d "
    "--bare --disable-slash-commands --chrome --no-chrome",
    "version": "-v --version",
    "help": "-h --help",
    "manage": "mcp config doctor update install plugin setup-token auth agents migrate-installer",
    "rest": "first",
    "says": "2.1.197 (Claude Code)",
}

CODEX: Table = {
    "run": "exec e",
    "cwd": "-C --cd",
    "json": "--json --experimental-json",
    "last-message": "-o --output-last-message",
    "value": "-m --model -c --config -p --profile -s --sandbox -a --ask-for-approval --color --output-schema "
    "--enable --disable --local-provider --add-dir",
    "many": "-i --image",
    "switch": "--full-auto --yolo --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check --oss --search "
    "--ephemeral --last --all --ignore-user-config --ignore-rules --no-alt-screen",
    "version": "-V --version",
    "help": "-h --help",
    "manage": "login logout mcp mcp-server app-server completion sandbox debug apply cloud features",
    "rest": "first",
    "says": "codex-cli 0.171.0",
}

GEMINI: Table = {
    "prompt": "-p --prompt -i --prompt-interactive",
    "format": "-o --output-format",
    "resume": "-r --resume",
    "session": "--session-id",
    "value": "-m --model --approval-mode --delete-session --policy",
    "many": "-e --extensions --include-directories --allowed-mcp-server-names --allowed-tools",
    "switch": "-y --yolo -s --sandbox -d --debug --skip-trust --screen-reader --list-extensions -l --list-sessions "
    "--raw-output --accept-raw-output-risk",
    "version": "-v --version",
    "help": "-h --help",
    "manage": "mcp extensions skills hooks",
    "rest": "all",
    "says": "0.61.0",
}

OPENCODE: Table = {
    "run": "run",
    "cwd": "--dir",
    "format": "--format",
    "session": "-s --session",
    "continue": "-c --continue",
    "value": "-m --model --agent --title --attach --port --hostname --command --log-level --variant -p --password "
    "-u --username",
    "many": "-f --file",
    "switch": "--share --print-logs --fork --thinking --dangerously-skip-permissions --pure",
    "version": "-v --version",
    "help": "-h --help",
    "manage": "auth providers models upgrade uninstall stats session export import mcp agent serve web",
    "rest": "all",
    "says": "1.18.33",
}

AIDER: Table = {
    "prompt": "-m --message --msg",
    "prompt-file": "-f --message-file",
    "value": "--model --weak-model --editor-model --edit-format --file --read --map-tokens --map-refresh --env-file "
    "--config -c --test-cmd --lint-cmd --timeout --encoding --openai-api-key --anthropic-api-key --api-key --set-env "
    "--openai-api-base --chat-history-file --input-history-file --llm-history-file --chat-language "
    "--commit-language --reasoning-effort --thinking-tokens --max-chat-history-tokens --subtree-path --aiderignore",
    "switch": "--yes --yes-always --no-git --git --auto-commits --no-auto-commits --dirty-commits "
    "--no-dirty-commits --stream --no-stream --pretty --no-pretty --auto-test --no-auto-test --auto-lint "
    "--no-auto-lint --dry-run --no-dry-run --verbose -v --architect --no-check-update --check-update --cache-prompts "
    "--no-gitignore --no-show-model-warnings --no-analytics --analytics-disable --no-suggest-shell-commands "
    "--no-detect-urls --subtree-only --opus --sonnet --haiku --4o --mini --deepseek --exit --no-fancy-input",
    "version": "--version",
    "help": "-h --help",
    "rest": "files",
    "says": "aider 0.86.1",
}

CURSOR: Table = {
    "print": "-p --print",
    "run": "agent chat",
    "cwd": "--workspace",
    "format": "--output-format",
    "resume": "--resume",
    "continue": "--continue",
    "value": "--model -a --api-key -m --mode -H --header --sandbox",
    "switch": "-f --force --yolo --stream-partial-output --approve-mcps --trust --browser --cloud --plan",
    "version": "-v --version",
    "help": "-h --help",
    "manage": "login logout status whoami update upgrade mcp models about create-chat ls install-shell-integration",
    "rest": "first",
    "says": "2025.11.25",
}

ANY: Table = {
    "print": "-p --print",
    "prompt": "--prompt --message --task --query -q",
    "prompt-file": "--prompt-file --message-file",
    "run": "run exec",
    "cwd": "-C --cd --cwd --dir --workdir --workspace",
    "format": "--output-format --format -o",
    "json": "--json",
    "session": "--session --session-id",
    "resume": "-r --resume",
    "continue": "-c --continue",
    "turns": "--max-turns",
    "value": "-m --model --provider --api-key --config --profile --mode",
    "switch": "-y --yes --yolo --force --verbose --debug --quiet",
    "version": "-V --version",
    "help": "-h --help",
    "rest": "first",
    "says": "1.0.0",
}
"""For names that are nobody's: what most CLIs have in common."""

TABLES: dict[str, Table] = {
    "claude": CLAUDE,
    "codex": CODEX,
    "gemini": GEMINI,
    "qwen": GEMINI,
    "opencode": OPENCODE,
    "aider": AIDER,
    "cursor-agent": CURSOR,
}
