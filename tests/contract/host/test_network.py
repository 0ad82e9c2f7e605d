"""How the requests of a host reach their provider: proxies, certificates, and how long a silent connection lives."""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.demo.model import Say, ScriptedModel, write_agent_directory
from pi_session_mcp.host.process import SCRIPT
from tests.support.model_steps import Fail, Silence, Slow
from tests.support.proxy import UNKNOWN_HOST, RecordingProxy, company_certificate, port_of
from tests.support.raw_host import RawHost, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime

QUICK_RETRIES = {"retry": {"baseDelayMs": 1}}
NO_RETRIES = {"retry": {"enabled": False}}


def set_base_url(agent_directory: Path, url: str) -> None:
    models = json.loads((agent_directory / "models.json").read_text())
    models["providers"]["scripted"]["baseUrl"] = url
    (agent_directory / "models.json").write_text(json.dumps(models))


def settings(agent_directory: Path, **values: object) -> None:
    (agent_directory / "settings.json").write_text(json.dumps(values))


@pytest.fixture
def start_host(runtime: Runtime, model: ScriptedModel, tmp_path: Path) -> Iterator[Callable[..., RawHost]]:
    """A host with these variables, greeted; its agent directory is `agent`."""
    with ExitStack() as stack:

        def start(**variables: str) -> RawHost:
            write_agent_directory(tmp_path / "agent", model.base_url)
            host = stack.enter_context(RawHost(runtime, tmp_path / "agent", tmp_path, **variables))
            host.greet(bundled=True)
            return host

        yield start


@contextmanager
def proxy_to(model: ScriptedModel) -> Iterator[RecordingProxy]:
    with RecordingProxy(port_of(model)) as proxy:
        yield proxy


def test_requests_go_through_the_proxy_of_the_environment_and_others_directly(
    start_host: Callable[..., RawHost], model: ScriptedModel, workspace: Path, tmp_path: Path
) -> None:
    certificate, bundle = company_certificate(tmp_path, UNKNOWN_HOST)
    with proxy_to(model) as plain, RecordingProxy(port_of(model), certificate) as secure:
        host = start_host(
            http_proxy=plain.address,
            HTTPS_PROXY=secure.address,
            NO_PROXY="elsewhere.invalid, 127.0.0.1",
            NODE_EXTRA_CA_CERTS=str(bundle),
        )
        settings(tmp_path / "agent", httpProxy="http://127.0.0.1:9", **QUICK_RETRIES)
        model.on("again", Fail(503), Say("at last"))
        by_name = host.session(workspace)

        set_base_url(tmp_path / "agent", f"http://{UNKNOWN_HOST}/v1")
        assert by_name.opened().say("again") == "at last"
        assert set(plain.asked) == {f"CONNECT {UNKNOWN_HOST}:80"}
        assert len(model.requests) == 2

        set_base_url(tmp_path / "agent", f"https://{UNKNOWN_HOST}/v1")
        assert host.session(workspace).opened().say("hello") == "ok"
        assert set(secure.asked) == {f"CONNECT {UNKNOWN_HOST}:443"}

        asked = len(plain.asked)
        set_base_url(tmp_path / "agent", model.base_url)
        assert host.session(workspace).opened().say("hello") == "ok"
        assert len(plain.asked) == asked


@pytest.mark.parametrize(
    "how",
    [{"NODE_OPTIONS": "--use-openssl-ca"}, {"NODE_USE_SYSTEM_CA": "1"}],
    ids=["the option for OpenSSL's", "the variable for the system's"],
)
def test_a_bundle_that_openssl_is_told_counts_where_node_asks_openssl(
    start_host: Callable[..., RawHost], model: ScriptedModel, workspace: Path, tmp_path: Path, how: dict[str, str]
) -> None:
    certificate, bundle = company_certificate(tmp_path, UNKNOWN_HOST)
    with RecordingProxy(port_of(model), certificate) as proxy:
        host = start_host(HTTPS_PROXY=proxy.address, SSL_CERT_FILE=str(bundle), **how)
        set_base_url(tmp_path / "agent", f"https://{UNKNOWN_HOST}/v1")

        assert host.session(workspace).opened().say("hello") == "ok"


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(
    start_host: Callable[..., RawHost], model: ScriptedModel, workspace: Path, tmp_path: Path
) -> None:
    certificate, _ = company_certificate(tmp_path, UNKNOWN_HOST)
    with RecordingProxy(port_of(model), certificate) as proxy:
        host = start_host(HTTPS_PROXY=proxy.address)
        settings(tmp_path / "agent", **NO_RETRIES)
        set_base_url(tmp_path / "agent", f"https://{UNKNOWN_HOST}/v1")

        assert host.session(workspace).opened().run("hello")["stopReason"] == "error"
        assert (len(proxy.asked), model.requests) == (1, [])


def test_pis_proxy_setting_counts_for_the_sessions_that_read_it(
    host: RawHost, agent_directory: Path, model: ScriptedModel, workspace: Path
) -> None:
    direct = host.session(workspace).opened()
    with proxy_to(model) as proxy:
        settings(agent_directory, httpProxy=f" {proxy.address} ")
        set_base_url(agent_directory, f"http://{UNKNOWN_HOST}/v1")
        through = host.session(workspace).opened()

        assert through.say("hello") == "ok"
        asked = len(proxy.asked)
        assert asked > 0
        assert direct.say("hello") == "ok"
        through.ask("dispose")
        assert direct.say("hello again") == "ok"
        assert len(proxy.asked) == asked


def test_a_proxy_that_is_gone_means_no_request_at_all(
    host: RawHost, agent_directory: Path, model: ScriptedModel, workspace: Path
) -> None:
    settings(agent_directory, httpProxy="http://127.0.0.1:9", **NO_RETRIES)

    assert host.session(workspace).opened().run("hello")["stopReason"] == "error"
    assert model.requests == []


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_variable_that_is_no_address_refuses_the_session(
    start_host: Callable[..., RawHost], workspace: Path, variable: str
) -> None:
    host = start_host(**{variable: "proxy.company:3128"})

    with pytest.raises(Refused, match="proxy"):
        host.session(workspace).load()


@pytest.mark.parametrize(
    "address",
    [
        *("proxy:3128", "ftp://127.0.0.1:9", "http://", "http://%zz@127.0.0.1:9", "x", 9),
        *("http://127.0.0.1:9/path", "https://127.0.0.1:9/?query", "http://127.0.0.1:9#fragment"),
    ],
)
def test_a_proxy_setting_that_is_no_address_refuses_the_session(
    host: RawHost, agent_directory: Path, workspace: Path, address: object
) -> None:
    settings(agent_directory, httpProxy=address)

    with pytest.raises(Refused, match="pi_configuration"):
        host.session(workspace).load()


def test_a_silent_model_is_cut_at_the_limit_of_the_settings_and_waited_for_without_one(
    host: RawHost, agent_directory: Path, model: ScriptedModel, workspace: Path
) -> None:
    model.on("slow", Slow("patience pays", chunks=2, gap_s=3))
    model.on("silent", Silence())
    settings(agent_directory, httpIdleTimeoutMs=1000, **NO_RETRIES)
    hasty = host.session(workspace).opened()
    settings(agent_directory, httpIdleTimeoutMs=0, **NO_RETRIES)
    patient = host.session(workspace).opened()

    answer = patient.start("slow")
    assert hasty.run("slow")["stopReason"] == "error"
    assert hasty.run("silent")["stopReason"] == "error"
    assert patient.settled(answer)["text"] == "patience pays"
    assert len(model.requests) == 3


PROXIES: list[tuple[dict[str, str], str | None, dict[str, str]]] = [
    ({}, None, {"http": "", "https": "", "noProxy": ""}),
    ({"http_proxy": "a", "HTTP_PROXY": "b"}, "c", {"http": "a", "https": "c", "noProxy": ""}),
    ({"HTTP_PROXY": "b"}, None, {"http": "b", "https": "b", "noProxy": ""}),
    ({"https_proxy": "a", "HTTPS_PROXY": "b"}, None, {"http": "", "https": "a", "noProxy": ""}),
    ({"http_proxy": "", "HTTP_PROXY": "b"}, "c", {"http": "", "https": "c", "noProxy": ""}),
    ({"HTTPS_PROXY": ""}, "c", {"http": "c", "https": "c", "noProxy": ""}),
    ({}, " c ", {"http": "c", "https": "c", "noProxy": ""}),
    ({}, " ", {"http": "", "https": "", "noProxy": ""}),
    ({"ALL_PROXY": "a"}, None, {"http": "a", "https": "a", "noProxy": ""}),
    ({"all_proxy": "a", "ALL_PROXY": "b"}, "c", {"http": "c", "https": "c", "noProxy": ""}),
    ({"no_proxy": "a", "NO_PROXY": "b"}, None, {"http": "", "https": "", "noProxy": "a"}),
    ({"NO_PROXY": "b"}, None, {"http": "", "https": "", "noProxy": "b"}),
]


def test_variables_stand_before_the_setting_as_they_do_for_pi(runtime: Runtime) -> None:
    asked = json.dumps([[environ, setting] for environ, setting, _ in PROXIES])
    program = f"""
        import {{ proxiesOf }} from {json.dumps(SCRIPT.with_name("network.mjs").as_uri())};
        const asked = {asked};
        console.log(JSON.stringify(asked.map(([environ, setting]) => proxiesOf(environ, setting ?? undefined))));
    """
    said: list[Any] = json.loads(
        subprocess.run(
            [runtime.node, "--input-type=module", "-e", program], check=True, capture_output=True, timeout=30
        ).stdout
    )

    assert said == [expected for _, _, expected in PROXIES]
