"""The rows of the table about Pi's own files, and about what the profiles select of Pi. Pure."""

from __future__ import annotations

from typing import Final

from pi_session_mcp.doctor.ids import PROFILE, VARIABLE, Id, Row, Severity
from pi_session_mcp.doctor.remedies import Remedy

_WARNING: Final = Severity.WARNING
_ERROR: Final = Severity.ERROR

PI_FILE_ROWS: Final = (
    Row(
        Id.PI_RUNTIME_BROKEN,
        _ERROR,
        "Pi runtime",
        "starts",
        "does not start",
        "Node cannot load the Pi SDK, or the SDK is not the one that its manifest says. No session starts.",
        (Remedy.RUNTIME_AGAIN,),
    ),
    Row(
        Id.PI_AGENT_DIRECTORY_IGNORED,
        _WARNING,
        "PI_CODING_AGENT_DIR",
        "not ignored",
        "ignored",
        "The variable is not an absolute path, or names a directory in the working directory or in a workspace. A "
        "project could have set it, so the usual `~/.pi/agent` is used, and what is said of Pi's files is about "
        "that. A server is started in its client's working directory, which may be another than this one.",
        (Remedy.ABSOLUTE_VARIABLE, Remedy.VARIABLE_OUTSIDE),
    ),
    Row(
        Id.PI_CONFIGURATION_INVALID,
        _ERROR,
        "Pi configuration",
        "usable",
        "cannot be used as it is",
        "The subject is the file: `models.json`, `auth.json` or `settings.json` in Pi's agent directory. It is "
        "there and cannot be read; or it is not one JSON object; or Pi refuses an entry, also where only one of "
        "many is wrong; or one of the [settings that count](runtime.md#settings-of-pi) has a value that it cannot "
        "have. Pi would go on without the file, perhaps at another endpoint than the one you meant. Comments and "
        "trailing commas count as well, although Pi forgives them in `models.json`. The files are never shown.",
        (Remedy.PI_FILE_READABLE, Remedy.PI_FILE_JSON, Remedy.PI_FILE_ENTRIES, Remedy.AGENT_DIRECTORY),
    ),
    Row(
        Id.PI_AGENT_DIRECTORY_NOT_WRITABLE,
        _WARNING,
        "agent directory",
        "can be locked",
        "not writable",
        "Pi reads no credential without a lock beside `auth.json`, and makes that file if it is missing. Where it "
        "cannot, starts are refused as `local_authentication_unavailable`.",
        (Remedy.WRITABLE_AGENT_DIRECTORY,),
    ),
    Row(
        Id.PI_LOCK_PRESENT,
        _WARNING,
        "agent directory",
        "not locked",
        "locked",
        "`auth.json.lock` is there. A Pi is at work this very moment, or one was killed and left it behind. Pi "
        "takes over an empty directory after ten seconds; until then, and for good if it is anything else, starts "
        "are refused as `local_authentication_unavailable`.",
        (Remedy.REMOVE_LOCK,),
    ),
    Row(
        Id.PROXY_INVALID,
        _ERROR,
        "proxy",
        "usable or none",
        "no usable address",
        "A [proxy variable](runtime.md#proxies-and-certificates) holds no address that can be used, so that every "
        "start is refused. A client may pass on other variables than this terminal has.",
        (Remedy.PROXY,),
    ),
    Row(
        Id.VARIABLE_NOT_PASSED_ON,
        _WARNING,
        VARIABLE,
        "reach the server",
        "does not reach the server",
        "Codex is registered, and gives its servers few variables. This one is set here and [decides how Pi reaches "
        "providers](runtime.md#proxies-and-certificates): Codex does not pass it on, so that sessions there go without "
        "it. The subject is the variable, or `variables` when there is none of this kind.",
        (Remedy.PROXY_SETTING, Remedy.PASS_VARIABLE, Remedy.EXTRA_CERTIFICATES),
    ),
)

PROFILE_ROWS: Final = (
    Row(
        Id.PROFILE_PROVIDER_UNKNOWN,
        _ERROR,
        PROFILE,
        "provider known",
        "unknown provider",
        "Pi knows no provider of the profile's name.",
        (Remedy.PROFILE_PROVIDER,),
    ),
    Row(
        Id.PROFILE_MODEL_UNKNOWN,
        _ERROR,
        PROFILE,
        "model known",
        "unknown model",
        "The profile's provider has no model of that name in Pi's catalogue or in `models.json`.",
        (Remedy.PROFILE_MODEL,),
    ),
    Row(
        Id.PROFILE_AUTHENTICATION_MISSING,
        _ERROR,
        PROFILE,
        "login or key there",
        "no login and no key",
        "Pi has no credential for the profile's provider.",
        (Remedy.LOG_IN,),
    ),
    Row(
        Id.PROFILE_AUTHENTICATION_UNAVAILABLE,
        _ERROR,
        PROFILE,
        "login or key usable",
        "login or key cannot be used",
        "There is a credential for the profile's provider, and Pi cannot use it: a variable that it names is not "
        "set, or a stored login is damaged. Whether the provider accepts it only a prompt can tell.",
        (Remedy.LOG_IN_AGAIN,),
    ),
    Row(
        Id.PROFILE_MODEL_UNAVAILABLE,
        _ERROR,
        PROFILE,
        "model available",
        "model not available to this login",
        "The provider has the model, but not for this login.",
        (Remedy.AVAILABLE_MODEL,),
    ),
    Row(
        Id.PROFILE_THINKING_LEVEL_UNAVAILABLE,
        _ERROR,
        PROFILE,
        "thinking level available",
        "thinking level not available",
        "The model has other thinking levels; Pi would silently take one of them.",
        (Remedy.THINKING_LEVEL,),
    ),
)
