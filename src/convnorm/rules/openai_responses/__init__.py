"""What OpenAI Responses enforces on `input`, and what its compatible servers do differently."""

from collections.abc import Mapping

from convnorm.rules.openai_chat.arguments import ARGUMENTS_JSON
from convnorm.rules.openai_responses.fields import FIELDS
from convnorm.rules.openai_responses.ids import IDS
from convnorm.rules.openai_responses.pairing import PAIRING
from convnorm.rules.openai_responses.reasoning import REASONING
from convnorm.rules.openai_responses.servers import SERVERS
from convnorm.rules.openai_responses.shapes import SHAPES
from convnorm.rules.openai_responses.state import STATE
from convnorm.rules.openai_responses.words import API

__all__ = ["API", "LEFT_OUT", "RULES"]

RULES = PAIRING + STATE + REASONING + IDS + SHAPES + FIELDS + SERVERS + (ARGUMENTS_JSON,)

LEFT_OUT: Mapping[str, str] = {}
"""By id: why a known rule of this API is not here. So far every one can be shown."""
