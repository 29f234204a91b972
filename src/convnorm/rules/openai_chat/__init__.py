"""What OpenAI Chat Completions enforces on `messages`, and what its compatible servers add."""

from convnorm.rules.openai_chat.arguments import ARGUMENTS_JSON
from convnorm.rules.openai_chat.common import API
from convnorm.rules.openai_chat.names import NAMES
from convnorm.rules.openai_chat.order import ORDER
from convnorm.rules.openai_chat.pairing import PAIRING
from convnorm.rules.openai_chat.parts import PARTS
from convnorm.rules.openai_chat.reasoning import REASONING
from convnorm.rules.openai_chat.roles import ROLES
from convnorm.rules.openai_chat.servers import SERVERS
from convnorm.rules.openai_chat.shapes import SHAPES

__all__ = ["API", "ARGUMENTS_JSON", "RULES"]

RULES = PAIRING + NAMES + SHAPES + ROLES + PARTS + SERVERS + (ARGUMENTS_JSON,) + REASONING + ORDER
