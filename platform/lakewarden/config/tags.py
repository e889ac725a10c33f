"""Settings of tags: how long and how many their values may be."""

from pydantic import Field

from lakewarden.config.sections import Section


class TagsConfig(Section):
    max_value_length: int = Field(
        256,
        ge=1,
        le=4096,
        description="Longest value of a tag, and longest allowed value of a definition, in characters.",
    )
    max_allowed_values: int = Field(
        1000, ge=1, le=10_000, description="Most allowed values of a tag definition of the kind `enumerated`."
    )
