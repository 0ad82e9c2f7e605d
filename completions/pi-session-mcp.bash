# Completion of pi-session-mcp, written by tools/generate.py.
# Nothing but bash is needed, from version 3.2.

_pi_session_mcp() {
    local line word before i where="" candidates="" prefix=""
    local -a words
    COMPREPLY=()
    # Bash splits words at colons and targets have them, so the line is split again, up to the cursor.
    line="${COMP_LINE:0:COMP_POINT}"
    line="${line#*"$1"}"
    read -r -a words <<< "$line"
    [[ -z $line || $line == *[[:space:]] ]] && words+=("")
    word="${words[${#words[@]}-1]}"
    for ((i = 0; i < ${#words[@]} - 1; i++)); do
        case "$where ${words[i]}" in
            ' serve'|' doctor'|' setup'|' demo'|' runtime'|' runtime install'|' runtime status'|' config'|' config init'|' config check'|' config schema'|' extensions'|' extensions check') where="$where ${words[i]}" ;;
        esac
        before="${words[i]}"
    done
    case "$where $before" in
        ' --show-completion') candidates='bash fish zsh' ;;
        ' config init --workspace') return ;;
        ' config init --provider') return ;;
        ' config init --model') return ;;
        ' config init --thinking-level') candidates='off minimal low medium high xhigh max' ;;
        ' config init --output') COMPREPLY=($(compgen -f -- "$word")); return ;;
    esac
    if [[ -z $candidates ]]; then
        case "$where" in
            '') candidates="serve doctor setup demo runtime config extensions"
                [[ $word == -* || -z $candidates ]] && candidates="--version --install-completion --show-completion --help" ;;
            ' serve') candidates=""
                [[ $word == -* || -z $candidates ]] && candidates="--help" ;;
            ' doctor') candidates=""
                [[ $word == -* || -z $candidates ]] && candidates="--json --help" ;;
            ' setup') candidates="claude-code:user claude-code:project claude-code:local codex:user copilot:user"
                [[ $word == -* || -z $candidates ]] && candidates="--dry-run --apply --verify --rollback --remove --rebind --json --help" ;;
            ' demo') candidates=""
                [[ $word == -* || -z $candidates ]] && candidates="--json --help" ;;
            ' runtime') candidates="install status"
                [[ $word == -* || -z $candidates ]] && candidates="--help" ;;
            ' runtime install') candidates=""
                [[ $word == -* || -z $candidates ]] && candidates="--json --help" ;;
            ' runtime status') candidates=""
                [[ $word == -* || -z $candidates ]] && candidates="--json --help" ;;
            ' config') candidates="init check schema"
                [[ $word == -* || -z $candidates ]] && candidates="--help" ;;
            ' config init') candidates=""
                [[ $word == -* || -z $candidates ]] && candidates="--workspace --provider --model --thinking-level --coding --allow-unlisted --output --json --help" ;;
            ' config check') candidates=""
                [[ $word == -* || -z $candidates ]] && candidates="--json --help" ;;
            ' config schema') candidates=""
                [[ $word == -* || -z $candidates ]] && candidates="--help" ;;
            ' extensions') candidates="check"
                [[ $word == -* || -z $candidates ]] && candidates="--help" ;;
            ' extensions check') candidates=""
                [[ $word == -* || -z $candidates ]] && candidates="--json --help" ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$candidates" -- "$word"))
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
        prefix="${word%"${word##*:}"}"
        COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
    fi
}

complete -F _pi_session_mcp pi-session-mcp
