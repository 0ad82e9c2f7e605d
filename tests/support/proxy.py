"""A proxy on the loopback that counts what it is asked for, and a company's certificate to put into the way.

Whatever name it is asked for, it connects to the one place that it stands for. So a name that nobody knows is reached
through it or not at all.
"""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from acceptance.live.tunnel import tunnel

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pi_session_mcp.demo.model import ScriptedModel

UNKNOWN_HOST: Final = "model.invalid"
"""No resolver knows it (RFC 6761)."""


def port_of(model: ScriptedModel) -> int:
    """Where the endpoint listens."""
    port = urlsplit(model.base_url).port
    assert port is not None
    return port


class RecordingProxy:
    """The proxy, from `with` to the end of its block. With `certificate`, it takes TLS off as it passes things on."""

    def __init__(self, port: int, certificate: ssl.SSLContext | None = None) -> None:
        self.asked: list[str] = []
        """Each request so far: its method and what it named."""
        self._server = _Server(self.asked, port, certificate)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()

    @property
    def address(self) -> str:
        """What a proxy variable has to be."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, asked: list[str], port: int, certificate: ssl.SSLContext | None) -> None:
        self.asked = asked
        self.port = port
        self.certificate = certificate
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def hold(self, *ends: socket.socket) -> None:
        with self._lock:
            self._open.update(ends)

    def hang_up(self) -> None:
        with self._lock:
            for end in self._open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """A peer that left is no error of ours."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Log nothing."""

    def do_POST(self) -> None:
        """A request without a tunnel is noted, and refused."""
        self.server.asked.append(f"POST {self.path}")
        self.send_error(502)

    def do_CONNECT(self) -> None:
        self.server.asked.append(f"CONNECT {self.path}")
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        near: socket.socket = self.connection
        if self.server.certificate is not None:
            near = self.server.certificate.wrap_socket(near, server_side=True)
        with near, socket.create_connection(("127.0.0.1", self.server.port)) as far:
            self.server.hold(near, far)
            tunnel(near, far)
        self.close_connection = True


def company_certificate(directory: Path, *hosts: str) -> tuple[ssl.SSLContext, Path]:
    """A server's certificate for these hosts that nobody trusts by himself, and the bundle that makes it trusted."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "company")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    bundle, private = directory / "company.pem", directory / "company.key"
    bundle.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(bundle, private)
    return context, bundle
