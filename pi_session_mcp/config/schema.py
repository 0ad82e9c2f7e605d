"""The JSON Schema of the configuration, generated from the models and shipped with them."""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from pydantic.json_schema import GenerateJsonSchema

from pi_session_mcp.config.model import Document

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import core_schema

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class _Closed(GenerateJsonSchema):
    """Objects with aliases as keys refuse all other keys. Fields have no titles, since those only repeat the name."""

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        written = super().dict_schema(schema)
        patterns = written.pop("patternProperties", None)
        if patterns is not None:
            ((pattern, values),) = patterns.items()
            written |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
        return written

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


def generate() -> dict[str, Any]:
    """The schema of the models as they are now."""
    return {"$schema": DIALECT, **Document.model_json_schema(by_alias=True, schema_generator=_Closed)}


def to_text(schema: dict[str, Any]) -> str:
    """The text of the schema as it is shipped and printed."""
    return json.dumps(schema, indent=2, ensure_ascii=True) + "\n"


def load_text() -> str:
    """The shipped schema's text."""
    return resources.files(__package__).joinpath("schema.json").read_text(encoding="utf-8")
