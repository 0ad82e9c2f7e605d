# Completion of pi-session-mcp, written by tools/generate.py.

function __pi_session_mcp_at --description "Whether the words before the cursor name this command of pi-session-mcp"
    set -l where ""
    for word in (commandline -opc)[2..-1]
        if contains -- "$where $word" ' serve' ' doctor' ' setup' ' demo' ' runtime' ' runtime install' ' runtime status' ' config' ' config init' ' config check' ' config schema' ' extensions' ' extensions check'
            set where "$where $word"
        end
    end
    test "$where" = "$argv[1]"
end

complete -c pi-session-mcp -f
complete -c pi-session-mcp -n '__pi_session_mcp_at ""' -a serve -d 'Run the MCP server on standard input and output.'
complete -c pi-session-mcp -n '__pi_session_mcp_at ""' -a doctor -d 'Find what is wrong with this installation.'
complete -c pi-session-mcp -n '__pi_session_mcp_at ""' -a setup -d 'Register with MCP clients, or see what would be done.'
complete -c pi-session-mcp -n '__pi_session_mcp_at ""' -a demo -d 'See the main job work on this machine.'
complete -c pi-session-mcp -n '__pi_session_mcp_at ""' -a runtime -d 'Install the pinned Pi SDK, or look for it.'
complete -c pi-session-mcp -n '__pi_session_mcp_at ""' -a config -d 'Write, check or explain the configuration.'
complete -c pi-session-mcp -n '__pi_session_mcp_at ""' -a extensions -d 'Check the Pi extensions that the configuration pins.'
complete -c pi-session-mcp -n '__pi_session_mcp_at ""' -l version -d 'Print the version and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at ""' -l install-completion -d 'Install completion for the shell that this is run from.'
complete -c pi-session-mcp -n '__pi_session_mcp_at ""' -l show-completion -d 'Print the completion script for bash, fish or zsh.' -x -a 'bash fish zsh'
complete -c pi-session-mcp -n '__pi_session_mcp_at ""' -l help -d 'Show this message and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " serve"' -l help -d 'Show this message and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " doctor"' -l json -d 'Print one JSON report instead of text.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " doctor"' -l help -d 'Show this message and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " setup"' -a 'claude-code:user claude-code:project claude-code:local codex:user copilot:user'
complete -c pi-session-mcp -n '__pi_session_mcp_at " setup"' -l dry-run -d 'Show what is registered and what would be done.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " setup"' -l apply -d 'Register where nothing is registered yet.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " setup"' -l verify -d 'Start the registered server and talk to it.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " setup"' -l rollback -d 'Undo an --apply.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " setup"' -l remove -d 'Remove the registration.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " setup"' -l rebind -d 'Bring the registration up to date after an upgrade or a move.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " setup"' -l json -d 'Print one JSON report instead of text.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " setup"' -l help -d 'Show this message and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " demo"' -l json -d 'Print one JSON report instead of text.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " demo"' -l help -d 'Show this message and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " runtime"' -a install -d 'Install the pinned Pi SDK and ripgrep.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " runtime"' -a status -d 'Say which Node and Pi SDK would be used.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " runtime"' -l help -d 'Show this message and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " runtime install"' -l json -d 'Print one JSON report instead of text.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " runtime install"' -l help -d 'Show this message and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " runtime status"' -l json -d 'Print one JSON report instead of text.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " runtime status"' -l help -d 'Show this message and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " config"' -a init -d 'Write a first configuration; never over a file.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " config"' -a check -d 'Check the configuration and start nothing.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " config"' -a schema -d 'Print the configuration’s JSON Schema.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " config"' -l help -d 'Show this message and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " config init"' -l workspace -d 'A directory that sessions may work in, and the name that clients know it by. May be repeated.' -x
complete -c pi-session-mcp -n '__pi_session_mcp_at " config init"' -l provider -d 'The provider, as Pi names it.' -x
complete -c pi-session-mcp -n '__pi_session_mcp_at " config init"' -l model -d 'The model, as Pi names it.' -x
complete -c pi-session-mcp -n '__pi_session_mcp_at " config init"' -l thinking-level -d 'One of off, minimal, low, ... max.' -x -a 'off minimal low medium high xhigh max'
complete -c pi-session-mcp -n '__pi_session_mcp_at " config init"' -l coding -d 'Add an execution profile whose sessions may change files.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " config init"' -l allow-unlisted -d 'Take names that Pi does not list here, too.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " config init"' -l output -d 'The file to write.' -r -F
complete -c pi-session-mcp -n '__pi_session_mcp_at " config init"' -l json -d 'Print one JSON report instead of text.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " config init"' -l help -d 'Show this message and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " config check"' -l json -d 'Print one JSON report instead of text.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " config check"' -l help -d 'Show this message and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " config schema"' -l help -d 'Show this message and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " extensions"' -a check -d 'Check that every pinned Pi extension is installed as pinned.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " extensions"' -l help -d 'Show this message and exit.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " extensions check"' -l json -d 'Print one JSON report instead of text.'
complete -c pi-session-mcp -n '__pi_session_mcp_at " extensions check"' -l help -d 'Show this message and exit.'
