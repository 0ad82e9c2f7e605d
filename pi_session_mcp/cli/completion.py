"""Completion scripts for bash, zsh and fish, made from the command line's tree. Pure.

The scripts hold everything that they need: pressing Tab starts no Python. Typer's own scripts would start this program
each time. In bash they also lose targets such as `claude-code:user`, because bash takes a colon for the end of a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_session_mcp.cli.grammar import FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pi_session_mcp.cli.grammar import Node, Option

PROGRAM: Final = "pi-session-mcp"

_NOTICE: Final = "# Completion of pi-session-mcp, written by tools/generate.py."

_BASH: Final = """{notice}
# Nothing but bash is needed, from version 3.2.

_pi_session_mcp() {{
    local line word before i where="" candidates="" prefix=""
    local -a words
    COMPREPLY=()
    # Bash splits words at colons and targets have them, so the line is split again, up to the cursor.
    line="${{COMP_LINE:0:COMP_POINT}}"
    line="${{line#*"$1"}}"
    read -r -a words <<< "$line"
    [[ -z $line || $line == *[[:space:]] ]] && words+=("")
    word="${{words[${{#words[@]}}-1]}}"
    for ((i = 0; i < ${{#words[@]}} - 1; i++)); do
        case "$where ${{words[i]}}" in
            {known}) where="$where ${{words[i]}}" ;;
        esac
        before="${{words[i]}}"
    done
    case "$where $before" in
{valued}    esac
    if [[ -z $candidates ]]; then
        case "$where" in
{candidates}        esac
    fi
    COMPREPLY=($(compgen -W "$candidates" -- "$word"))
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
        prefix="${{word%"${{word##*:}}"}}"
        COMPREPLY=("${{COMPREPLY[@]#"$prefix"}}")
    fi
}}

complete -F _pi_session_mcp pi-session-mcp
"""

_ZSH: Final = """#compdef pi-session-mcp
{notice}

_pi_session_mcp() {{
    local i where=""
    local -a commands operands options
    for ((i = 2; i < CURRENT; i++)); do
        case "$where ${{words[i]}}" in
            {known}) where="$where ${{words[i]}}" ;;
        esac
    done
    case "$where ${{words[CURRENT-1]}}" in
{valued}    esac
    case "$where" in
{candidates}    esac
    if [[ "$PREFIX" != -* ]]; then
        (( $#commands )) && _describe -t commands command commands
        (( $#operands )) && _describe -t operands operand operands
        (( $#commands || $#operands )) && return
    fi
    _describe -o -t options option options
}}

if [[ "$funcstack[1]" == "_pi-session-mcp" ]]; then
    _pi_session_mcp "$@"
else
    compdef _pi_session_mcp pi-session-mcp
fi
"""

_FISH: Final = """{notice}

function __pi_session_mcp_at --description "Whether the words before the cursor name this command of pi-session-mcp"
    set -l where ""
    for word in (commandline -opc)[2..-1]
        if contains -- "$where $word" {known}
            set where "$where $word"
        end
    end
    test "$where" = "$argv[1]"
end

complete -c pi-session-mcp -f
{rules}"""


def bash(root: Node) -> str:
    """The script for bash, from version 3.2."""
    valued = "".join(
        f"        {_quoted(place)}) {_bash_value(option)} ;;\n" for place, option in _options_with_values(root)
    )
    candidates = "".join(
        f'            {_quoted(_where(node))}) candidates="{_bash_operands(node)}"\n'
        f'                [[ $word == -* || -z $candidates ]] && candidates="{_names(node)}" ;;\n'
        for node in root.walk()
    )
    return _BASH.format(notice=_NOTICE, known=_known(root, "|"), valued=valued, candidates=candidates)


def zsh(root: Node) -> str:
    """The script for zsh: to be sourced after `compinit`, or to be put into `fpath` as `_pi-session-mcp`."""
    valued = "".join(
        f"        {_quoted(place)}) {_zsh_value(option)}; return ;;\n" for place, option in _options_with_values(root)
    )
    return _ZSH.format(
        notice=_NOTICE, known=_known(root, "|"), valued=valued, candidates="".join(_zsh_case(n) for n in root.walk())
    )


def fish(root: Node) -> str:
    """The script for fish."""
    rules = "".join(f"complete -c pi-session-mcp {rule}\n" for node in root.walk() for rule in _fish_rules(node))
    return _FISH.format(notice=_NOTICE, known=_known(root, " "), rules=rules)


SCRIPTS: Final[dict[str, tuple[str, Callable[[Node], str]]]] = {
    "bash": ("pi-session-mcp.bash", bash),
    "fish": ("pi-session-mcp.fish", fish),
    "zsh": ("_pi-session-mcp", zsh),
}
"""For each shell, the file name of its script and the function that writes it."""


def _where(node: Node) -> str:
    return "".join(f" {word}" for word in node.path)


def _known(root: Node, separator: str) -> str:
    return separator.join(_quoted(_where(node)) for node in root.walk() if node.path)


def _options_with_values(root: Node) -> Iterator[tuple[str, Option]]:
    for node in root.walk():
        for option in node.options:
            if option.takes_value:
                yield f"{_where(node)} {option.name}", option


def _names(node: Node) -> str:
    return " ".join(option.name for option in node.options)


def _bash_operands(node: Node) -> str:
    return " ".join([*(command.path[-1] for command in node.commands), *node.operands])


def _bash_value(option: Option) -> str:
    if FILES in option.values:
        return 'COMPREPLY=($(compgen -f -- "$word")); return'
    return f"candidates={_quoted(' '.join(option.values))}" if option.values else "return"


def _zsh_case(node: Node) -> str:
    groups = {
        "commands": [(command.path[-1], command.short) for command in node.commands],
        "operands": [(operand, "") for operand in node.operands],
        "options": [(option.name, option.help) for option in node.options],
    }
    arrays = "".join(
        f"            {group}=({' '.join(_zsh_entry(*entry) for entry in entries)})\n"
        for group, entries in groups.items()
        if entries
    )
    return f"        {_quoted(_where(node))})\n{arrays}            ;;\n"


def _zsh_entry(name: str, says: str) -> str:
    escaped = name.replace(":", "\\:")
    return _quoted(f"{escaped}:{says}" if says else escaped)


def _zsh_value(option: Option) -> str:
    if FILES in option.values:
        return "_files"
    return f"compadd -- {_all_quoted(option.values)}" if option.values else "_message value"


def _fish_rules(node: Node) -> Iterator[str]:
    at = f"-n {_quoted(f'__pi_session_mcp_at {_fish_word(_where(node))}')}"
    for command in node.commands:
        yield f"{at} -a {command.path[-1]} -d {_quoted(command.short)}"
    if node.operands:
        yield f"{at} -a {_quoted(' '.join(node.operands))}"
    for option in node.options:
        yield f"{at} -l {option.name.removeprefix('--')} -d {_quoted(option.help)}{_fish_value(option)}"


def _fish_value(option: Option) -> str:
    if not option.takes_value:
        return ""
    if FILES in option.values:
        return " -r -F"
    return f" -x -a {_quoted(' '.join(option.values))}" if option.values else " -x"


def _fish_word(where: str) -> str:
    return f'"{where}"'


def _all_quoted(words: Iterable[str]) -> str:
    return " ".join(_quoted(word) for word in words)


def _quoted(text: str) -> str:
    """`text` in quotes, for any of the three shells. Our texts have no quotes or backslashes to escape."""
    if "'" in text:  # an apostrophe in a help text: each of the three shells escapes it in another way
        text = text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")
    return f"'{text}'"
