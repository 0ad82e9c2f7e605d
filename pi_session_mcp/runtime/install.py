"""Puts the pinned Pi SDK and ripgrep where `locate` finds them, whole or not at all.

The order makes it safe to kill this at any moment. Everything is made under a temporary name, checked, and renamed to
the hash of its lock file. Then the record is replaced. Until the rename nothing refers to the new files, and until the
record is replaced it names the old install.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import tempfile
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.platform.files import sync_directory
from pi_session_mcp.runtime import npm
from pi_session_mcp.runtime.locate import Source, checked_sdk
from pi_session_mcp.runtime.probe import ask, node_version
from pi_session_mcp.runtime.problem import RuntimeProblem
from pi_session_mcp.runtime.record import (
    Installed,
    Place,
    Record,
    find_installed,
    sdk_directory,
    shipped_lock,
    shipped_lock_hash,
    tools_directory,
    writable_place,
    write_record,
)
from pi_session_mcp.runtime.result import InstallCode, InstallResult, InstallStopped, Phase, Progress
from pi_session_mcp.runtime.toolchain import Toolchain, find_toolchain
from pi_session_mcp.runtime.versions import SDK_PIN, node_is_supported, release_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.runtime.result import Watcher

_TEMPORARY: Final = ".installing-"
_GUARDED: Final = ("--permission", "--allow-fs-read=*")
"""With these, Node refuses to write a file or to run a program (22.13 and newer)."""
_LOAD: Final = (
    'import { pathToFileURL } from "node:url"; await import(pathToFileURL(process.argv[1])); process.exit(0);'
)

_NPM_CODES: Final[dict[npm.NpmEnd, InstallCode]] = {
    npm.NpmEnd.NETWORK: InstallCode.REGISTRY_UNREACHABLE,
    npm.NpmEnd.INTEGRITY: InstallCode.INTEGRITY,
    npm.NpmEnd.DISK_FULL: InstallCode.DISK_FULL,
    npm.NpmEnd.TIMED_OUT: InstallCode.TIMED_OUT,
    npm.NpmEnd.FAILED: InstallCode.FAILED,
    npm.NpmEnd.NOT_STARTED: InstallCode.NPM_MISSING,
}
_ERRNO_CODES: Final[dict[int, InstallCode]] = {
    errno.ENOSPC: InstallCode.DISK_FULL,
    errno.EDQUOT: InstallCode.DISK_FULL,
    errno.EACCES: InstallCode.PLACE_UNWRITABLE,
    errno.EPERM: InstallCode.PLACE_UNWRITABLE,
    errno.EROFS: InstallCode.PLACE_UNWRITABLE,
}


def _unwatched(progress: Progress) -> None:
    """Does nothing with the progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """What an install is made with. `prefix` is the Python environment. For `untrusted` see `find_program`."""

    environ: Mapping[str, str]
    untrusted: Iterable[Path] = ()
    prefix: Path | None = None
    toolchain: Toolchain | None = None
    watch: Watcher = _unwatched
    deadlines: Deadlines = DEADLINES


def install(installer: Installer) -> InstallResult:
    """Install; see `install_async`. SIGINT and SIGTERM end npm, remove what was made, and give `interrupted`."""
    return anyio.run(_until_signalled, installer)


async def install_async(installer: Installer) -> InstallResult:
    """Install, check and record the pinned Pi SDK, or change nothing. The result says which.

    Other installs may run at the same time. The first one that is done counts, and the others discard theirs. When this
    is cancelled, npm has ended and the temporary directory is removed.
    """
    try:
        with _umask(0o022):
            return await _install(installer)
    except InstallStopped as stopped:
        return InstallResult(stopped.code, node_version=stopped.node_version)
    except OSError as error:
        return InstallResult(_ERRNO_CODES.get(error.errno or 0, InstallCode.FAILED))


async def _until_signalled(installer: Installer) -> InstallResult:
    result = InstallResult(InstallCode.INTERRUPTED)
    async with anyio.create_task_group() as group:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:

            async def stop_at_signal() -> None:
                nonlocal result
                async for number in signals:
                    status = ExitStatus.INTERRUPTED if number == signal.SIGINT else ExitStatus.TERMINATED
                    result = InstallResult(InstallCode.INTERRUPTED, exit_status=status)
                    group.cancel_scope.cancel()

            group.start_soon(stop_at_signal)
            result = await install_async(installer)
            group.cancel_scope.cancel()
    return result


async def _install(installer: Installer) -> InstallResult:
    installer.watch(Progress(Phase.CHECKING))
    place = writable_place(installer.environ, installer.prefix)
    elsewhere = await _sound_install_elsewhere(installer, place)
    if elsewhere is not None:
        return elsewhere
    if place is None:
        raise InstallStopped(InstallCode.PLACE_UNWRITABLE)
    toolchain = installer.toolchain or find_toolchain(installer.environ, installer.untrusted)
    if toolchain is None:
        raise InstallStopped(InstallCode.NODE_MISSING)
    version = await _supported_node(toolchain.node, installer.environ)
    lock = shipped_lock_hash()
    target = place.install(lock)
    code = InstallCode.ALREADY_INSTALLED
    if not await _is_sound(target, toolchain.node, installer.environ):
        code = await _fill(place, target, toolchain, installer)
    _record(place, Record(lock=lock, node=str(toolchain.node), node_version=version, sdk_version=SDK_PIN), installer)
    return InstallResult(code, node_version=version, sdk_version=SDK_PIN, exit_status=ExitStatus.OK)


async def _sound_install_elsewhere(installer: Installer, place: Place | None) -> InstallResult | None:
    """The install in use, if it is the right one but in another place: another user has installed it."""
    installed = _in_use(installer)
    if installed is None or installed.place == place:
        return None
    record = installed.record
    try:
        version = await _supported_node(Path(record.node), installer.environ)
    except InstallStopped:
        return None
    if record.lock != shipped_lock_hash() or not await _is_sound(
        installed.directory, Path(record.node), installer.environ
    ):
        return None
    code = InstallCode.ALREADY_INSTALLED
    return InstallResult(code, node_version=version, sdk_version=record.sdk_version, exit_status=ExitStatus.OK)


def _record(place: Place, record: Record, installer: Installer) -> None:
    """Make `record` the one in use, and check that it is."""
    wanted = Installed(place, record)
    if _in_use(installer) == wanted:
        return
    write_record(place, record)
    if _in_use(installer) != wanted:
        # A record that we cannot replace comes first.
        raise InstallStopped(InstallCode.PLACE_UNWRITABLE)


async def _fill(place: Place, target: Path, toolchain: Toolchain, installer: Installer) -> InstallCode:
    """Make `target` in a temporary directory first. If this raises, nothing is left."""
    if toolchain.npm is None:
        raise InstallStopped(InstallCode.NPM_MISSING)
    async with _held_lock(place, installer.deadlines) as lock:
        with _temporary_directory(place) as temporary:
            for name, content in shipped_lock().items():
                (temporary / name).write_bytes(content)
            command = npm.CleanInstall(toolchain.npm, temporary, lock, installer.deadlines.install_s)
            expected = _expected_fetches()
            end = await npm.run(
                command, installer.environ, lambda done: installer.watch(Progress(Phase.FETCHING, done, expected))
            )
            if end is not npm.NpmEnd.DONE:
                raise InstallStopped(_NPM_CODES[end])
            installer.watch(Progress(Phase.VERIFYING))
            if not await _is_sound(temporary, toolchain.node, installer.environ):
                raise InstallStopped(InstallCode.UNVERIFIED)
            return await _publish(temporary, target, toolchain.node, installer.environ)


async def _publish(temporary: Path, target: Path, node: Path, environ: Mapping[str, str]) -> InstallCode:
    """Rename to `target`. An install that is there already is kept if it works, and moved away if not."""
    # One sync for tens of thousands of files. On macOS this only starts it; the next install finds what a power failure
    # has damaged.
    os.sync()
    try:
        os.rename(temporary, target)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            raise
        if await _is_sound(target, node, environ):
            return InstallCode.ALREADY_INSTALLED
        aside = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=target.parent))
        os.rename(target, aside / "damaged")
        os.rename(temporary, target)
        shutil.rmtree(aside, ignore_errors=True)
    sync_directory(target.parent)
    return InstallCode.INSTALLED


async def _supported_node(node: Path, environ: Mapping[str, str]) -> str:
    version = await node_version(node, environ)
    if version is None:
        raise InstallStopped(InstallCode.NODE_MISSING)
    if not node_is_supported(version):
        raise InstallStopped(InstallCode.NODE_VERSION_UNSUPPORTED, node_version=release_text(version))
    return version


async def _is_sound(directory: Path, node: Path, environ: Mapping[str, str]) -> bool:
    """Whether the pinned SDK exists and loads, and ripgrep runs on this machine."""
    try:
        sdk = checked_sdk(sdk_directory(directory), Source.INSTALLED)
    except RuntimeProblem:
        return False
    tools = tools_directory(directory)
    if sdk.version != SDK_PIN or tools is None:
        return False
    said = await ask((str(tools / "rg"), "--version"), environ)
    if said is None or not said.startswith("ripgrep "):
        return False
    loading = (str(node), *_GUARDED, "--input-type=module", "--eval", _LOAD, str(sdk.entry))
    return await ask(loading, environ, within_s=DEADLINES.install_load_s) is not None


def _in_use(installer: Installer) -> Installed | None:
    try:
        return find_installed(installer.environ, installer.prefix)
    except RuntimeProblem:
        return None


def _expected_fetches() -> int:
    """How many answers npm needs: one for the name and one for the content of each package for this platform."""
    packages = json.loads(shipped_lock()["package-lock.json"])["packages"]
    wanted = [entry for path, entry in packages.items() if path and not entry.get("optional")]
    return 2 * (len(wanted) + 1)


@asynccontextmanager
async def _held_lock(place: Place, deadlines: Deadlines) -> AsyncIterator[int]:
    """Hold the lock that all running installs share, and yield its descriptor.

    An install that gets the lock alone first removes what killed installs have left. The file is never removed.
    """
    place.installs.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(place.installers_lock, flags, 0o600)
    try:
        if _locked(descriptor, fcntl.LOCK_EX):
            _sweep(place)
        # Making the lock a shared one is not atomic, so another install may sweep in between. We have nothing to lose
        # yet.
        with anyio.move_on_after(deadlines.install_lock_s):
            # Another install is sweeping, which takes seconds, and flock(2) has no bounded wait.
            while not _locked(descriptor, fcntl.LOCK_SH):  # noqa: ASYNC110 - the kernel has no event for a lock
                await anyio.sleep(deadlines.install_lock_retry_s)
        if not _locked(descriptor, fcntl.LOCK_SH):
            raise InstallStopped(InstallCode.BUSY)
        yield descriptor
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sweep(place: Place) -> None:
    for left in place.installs.glob(f"{_TEMPORARY}*"):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _temporary_directory(place: Place) -> Iterator[Path]:
    temporary = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=place.installs))
    try:
        temporary.chmod(0o755)
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    """Keep others from writing to what is made here, whatever the caller's umask is."""
    before = os.umask(mask)
    os.umask(before | mask)
    try:
        yield
    finally:
        os.umask(before)
