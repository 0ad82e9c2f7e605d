"""The one variable that the operator's commands read. `serve` does not import this, since it takes long to import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from pi_session_mcp.terms.variable import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping


class Environment(BaseSettings):
    """`PI_SESSION_MCP_CONFIG` and nothing else: no prefix, no `.env`, no secrets directory, no arguments.

    `config` is not declared as text, because a path may have bytes that are not UTF-8. It is empty when unset.
    """

    model_config = SettingsConfigDict(
        case_sensitive=True, env_prefix="", env_file=None, secrets_dir=None, extra="ignore", frozen=True
    )

    config: Any = Field(default="", validation_alias=VARIABLE)

    @property
    def path(self) -> str:
        """The value of the variable, unchanged."""
        return str(self.config)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic-settings'
        init_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (env_settings,)


def read_environment(environ: Mapping[str, str]) -> Environment:
    """The variable in `environ`, which is read in place of the process's own environment."""

    class Given(Environment):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            *others: PydanticBaseSettingsSource,  # noqa: ARG003
            **named: PydanticBaseSettingsSource,  # noqa: ARG003
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            source = EnvSettingsSource(settings_cls)
            source.env_vars = environ
            return (source,)

    return Given()
