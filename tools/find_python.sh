# To be sourced: find a Python that can make an environment.
# A name on PATH is not enough: version managers leave shims that only print an error, and Debian splits off ensurepip.

usable() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' </dev/null >/dev/null 2>&1
}

first_usable() {
    for candidate in "$@"; do
        if usable "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    echo 'Python 3.11 or newer with the venv module is needed; name one with: make PYTHON=/path/to/python3' >&2
    return 1
}
