"""Run something as a user whom permissions hold back, also where the tests run as root.

As a program, `powers.py COMMAND …`, it turns into the command without them.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_Answer = TypeVar("_Answer")

_POWERS = (1, 2, 19, 21, 38)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON
_CAPBSET_DROP = 24
_VERSION_3 = 0x20080522


def give_up_powers() -> None:
    """Give up root's right to pass over permissions and to look into processes, for this one and what it starts.

    Nothing on other systems.
    """
    if os.geteuid() != 0 or os.uname().sysname != "Linux":
        return
    library = ctypes.CDLL(None, use_errno=True)
    for power in _POWERS:  # a program that root starts would otherwise have them again
        _succeed(library.prctl(_CAPBSET_DROP, power, 0, 0, 0))
    head = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()
    _succeed(library.capget(head, sets))
    for power in _POWERS:
        word, bit = divmod(power, 32)
        for place in (0, 1, 2):  # effective, permitted, inheritable
            sets[3 * word + place] &= ~(1 << bit)
    _succeed(library.capset(head, sets))


def without_powers(ask: Callable[[], _Answer], environ: Mapping[str, str]) -> _Answer:
    """What `ask` answers in a child process that has this environment and no power over permissions."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(ask, environ, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    answer: _Answer = pickle.loads(said)
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _answer(ask: Callable[[], object], environ: Mapping[str, str], writing: int) -> None:
    try:
        os.environ.clear()
        os.environ.update(environ)
        give_up_powers()
        said: object = ask()
    except BaseException as failed:  # noqa: BLE001 - it is raised in the parent
        said = failed
    try:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(pickle.dumps(said))
    finally:
        os._exit(0)


def _succeed(status: int) -> None:
    if status != 0:
        raise OSError(ctypes.get_errno(), "the powers could not be given up")


if __name__ == "__main__":
    give_up_powers()
    os.execv(sys.argv[1], sys.argv[1:])
