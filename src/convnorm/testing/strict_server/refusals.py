"""Error bodies in the shape of each provider, and which rule speaks first."""

import re
from collections.abc import Mapping
from typing import Any

from convnorm.rules import RULES, Violation
from convnorm.targets import Target
from convnorm.testing.strict_server.answers import Answer

ANTHROPIC = "anthropic.messages"
NO_RETRY = {"x-should-retry": "false"}
"""What tells the clients that asking again is of no use."""

OPENAI_TYPES = {429: "rate_limit_error"}
ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error_body(
    api: str | None,
    status: int,
    message: str,
    *,
    param: str | None = None,
    code: str | None = None,
    request_id: str | None = None,
) -> dict[str, Any]:
    """The provider's error body."""
    if api == ANTHROPIC:
        other = "api_error" if status >= 500 else "invalid_request_error"
        kind = ANTHROPIC_TYPES.get(status, other)
        return {
            "type": "error",
            "error": {"type": kind, "message": message},
            "request_id": request_id,
        }
    other = "server_error" if status >= 500 else "invalid_request_error"
    kind = OPENAI_TYPES.get(status, other)
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def refused(target: Target, violation: Violation, request_id: str) -> Answer:
    """The refusal of a rule: the provider's wording, and ours beside it."""
    rule = RULES[violation.rule]
    status = rule.status_elsewhere.get(target.provider, rule.status)
    wording = re.sub(r"^\d{3}:? ", "", violation.error)
    body = error_body(
        target.name,
        status,
        wording,
        param=violation.path,
        code=rule.code,
        request_id=request_id,
    )
    ours: Mapping[str, Any] = {
        "rule": violation.rule,
        "path": violation.path,
        "message": violation.message,
    }
    headers = {"x-convnorm-rule": violation.rule}
    return Answer(status, {**body, "convnorm": ours}, headers=headers)
