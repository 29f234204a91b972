"""The wire formats. Each module has the same names: KEY, detect, survey, decode, encode."""

from convnorm.dialects import openai_chat, openai_responses
from convnorm.dialects.dialect import Dialect

DIALECTS: dict[str, Dialect] = {
    "openai.chat": openai_chat,
    "openai.responses": openai_responses,
}
