"""Schemas that would cost anything, and images, on the real server, the real Pi SDK and real stdio servers."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import TYPE_CHECKING, Any, Final

import pytest

from pi_session_mcp.bridge.results import UNJUDGED_ARGUMENTS
from pi_session_mcp.demo.model import Call, Echo
from tests.support.environment import ensure_installed
from tests.support.external import BridgeWorld, said
from tests.support.real import PROFILE, run_turn
from tests.support.shared_bridge import SharedBridge
from tests.unit.bridge.test_judge import DOUBLING, MANY, PATTERN, UNIQUE
from tests.unit.bridge.test_results import PNG

if TYPE_CHECKING:
    from collections.abc import Iterator

CHOSEN: Final = {
    "doubling": (DOUBLING, {"n": "x"}),
    "unique": (UNIQUE, json.loads(MANY)),
    "pattern": (PATTERN, {"n": "x" * 38}),
}
"""Schemas, and what a model chooses, that would keep a judge busy for hours, by the name of their tool."""
BLOB: Final = {
    "type": "object",
    "properties": {"n": {"anyOf": [{"$ref": "#/components/schemas/Blob"}, {"type": "null"}]}},
    "components": {"schemas": {"Blob": {"type": "file"}}},
}
ENDLESS: Final = {"type": "object", "properties": {"n": {"pattern": "a{0,99999999999999999999}"}}}


def png(width: int, height: int, *, broken: bool = False) -> str:
    """A black image in base64, or one that only begins like an image."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    rows = b"no image" if broken else zlib.compress(bytes((width + 1) * height))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", rows) + chunk(b"IEND", b"")).decode()


def drawn(*images: str) -> str:
    content = [{"type": "image", "data": data, "mimeType": "image/png"} for data in images]
    return json.dumps({"content": [{"type": "text", "text": "before"}, *content]})


WIDE: Final = png(4000, 10)
BROKEN: Final = png(10, 10, broken=True)


def tool(name: str, schema: object) -> dict[str, Any]:
    return {"name": name, "inputSchema": schema}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedBridge]:
    costly = [tool(name, json.loads(schema)) for name, (schema, _) in CHOSEN.items()]
    with BridgeWorld(tmp_path_factory.mktemp("shared") / "world", ensure_installed()) as world:
        fixtures = {
            "costly": world.fixture(tools=costly),
            "odd": world.fixture(tools=[tool("blob", BLOB), tool("endless", ENDLESS)]),
            "drawing": world.fixture(
                tools=["draw", "mixed"], replies={"draw": drawn(PNG), "mixed": drawn(BROKEN, WIDE, PNG)}
            ),
        }
        show_images(world)
        reading = {"permissionProfile": "read-only", **PROFILE}
        drawing = {"library": fixtures["drawing"].configured("draw", "mixed")}
        world.configure(
            executionProfiles={
                "plain": {**reading, "default": True},
                "costly": {**reading, "mcpServers": {"library": fixtures["costly"].configured(*CHOSEN)}},
                "odd": {**reading, "mcpServers": {"library": fixtures["odd"].configured("blob", "endless")}},
                "blind": {**reading, "mcpServers": drawing},
                "seeing": {**reading, "model": "seeing-1", "mcpServers": drawing},
            }
        )
        bridge = SharedBridge(world, fixtures, {})
        yield bridge
        bridge.clear()


def show_images(world: BridgeWorld) -> None:
    """Give the scripted provider a second model, one that takes images."""
    path = world.agent_directory / "models.json"
    said = json.loads(path.read_text())
    (provider,) = said["providers"].values()
    provider["models"].append({**provider["models"][0], "id": "seeing-1", "input": ["text", "image"]})
    path.write_text(json.dumps(said))


@pytest.mark.parametrize("name", CHOSEN)
def test_what_a_model_chooses_for_a_costly_schema_costs_its_call_and_nobody_else(
    shared: SharedBridge, name: str
) -> None:
    world, child = shared.world, shared.child
    schema, arguments = CHOSEN[name]
    costly, other = shared.start("costly"), shared.start("plain")
    world.model.on("try it", Call(f"mcp_library_{name}", arguments), Echo())
    turn = child.call("pi_session_prompt", sessionId=costly, prompt="try it")["turn"]["turnId"]

    assert run_turn(child, other, "still there?")["assistantText"] == "ok"
    ended = child.call("pi_turn_get", sessionId=costly, turnId=turn, waitMs=50_000)["turn"]

    assert ended["assistantText"] == UNJUDGED_ARGUMENTS
    (shown,) = [one for one in world.tools_of_last_request().values() if one["name"] == f"mcp_library_{name}"]
    assert shown["parameters"] == json.loads(schema)
    assert said(world, child, costly, "mcp_library_unique", n=[1, 2]) == '{"n": [1, 2]}'
    assert shared.fixtures["costly"].notes("call")[-1]["arguments"] == {"n": [1, 2]}


def test_odd_schemas_are_judged_as_far_as_they_go(shared: SharedBridge) -> None:
    session = shared.start("odd")
    assert said(shared.world, shared.child, session, "mcp_library_blob", n=None) == '{"n": null}'
    assert "do not match" in said(shared.world, shared.child, session, "mcp_library_blob", n=7)
    assert said(shared.world, shared.child, session, "mcp_library_endless", n="a") == '{"n": "a"}'


@pytest.mark.parametrize(("profile", "sees"), [("seeing", True), ("blind", False)])
def test_an_image_is_shown_to_a_model_that_takes_images_and_named_to_another(
    shared: SharedBridge, profile: str, *, sees: bool
) -> None:
    session = shared.start(profile)
    shared.world.model.on("draw it", Call("mcp_library_draw"), Echo())

    assert run_turn(shared.child, session, "draw it")["state"] == "completed"

    sent = json.dumps(shared.world.model.requests[-1]["messages"])
    assert "before" in sent
    assert (f"data:image/png;base64,{PNG}" in sent) is sees
    assert ("[Image left out: image/png, 70 bytes.]" in sent) is not sees
    assert PNG not in sent.replace(f"data:image/png;base64,{PNG}", "")


def test_an_image_is_scaled_as_pi_scales_them_and_one_that_is_broken_is_named(shared: SharedBridge) -> None:
    session = shared.start("seeing")
    shared.world.model.on("draw them", Call("mcp_library_mixed"), Echo())

    assert run_turn(shared.child, session, "draw them")["state"] == "completed"

    sent = json.dumps(shared.world.model.requests[-1]["messages"])
    assert BROKEN not in sent
    assert WIDE not in sent
    assert sent.count("[Image left out: image/png, ") == 1
    assert sent.count("data:image/") == 2
    assert f"data:image/png;base64,{PNG}" in sent
