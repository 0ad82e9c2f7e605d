"""What a proxy does once it has agreed to a tunnel: bytes go both ways until one side has had enough."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

_CHUNK_BYTES = 65_536


def tunnel(near: socket.socket, far: socket.socket) -> None:
    """Pass on what each says to the other. Returns when either has ended, and with it the other."""
    back = threading.Thread(target=_pass_on, args=(far, near), daemon=True)
    back.start()
    _pass_on(near, far)
    back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK_BYTES):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
