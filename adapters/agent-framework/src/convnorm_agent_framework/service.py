"""Whose rules a client's requests must satisfy, read from the client and its endpoint."""

from typing import Any
from urllib.parse import urlsplit

from convnorm import Policy, PolicyError

AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".azure-api.net")
FOUNDRY = (".services.ai.azure.com",)


def policy_for(client: Any) -> Policy:
    """The default policy for a framework client."""
    classes = [kind.__name__ for kind in type(client).__mro__]
    if not any("OpenAI" in name or "Foundry" in name or "AzureAI" in name for name in classes):
        raise PolicyError(
            f"nothing is known of the API of {type(client).__name__}: "
            "name it, as in normalize_client(client, Policy.for_target('openai.chat'))"
        )
    target = "openai.responses" if getattr(client, "STORES_BY_DEFAULT", False) else "openai.chat"
    return Policy.for_target(target, provider=provider_of(client))


def provider_of(client: Any) -> str | None:
    """Who serves the client's API; None for the first party."""
    url = urlsplit(_endpoint(client))
    host, names = url.hostname or "", [kind.__name__ for kind in type(client).__mro__]
    if host.endswith(FOUNDRY) or any("Foundry" in name or "AzureAI" in name for name in names):
        return "azure-foundry"
    if host.endswith(AZURE) or "azure" in _telemetry_name(client):
        return "azure"
    return "azure" if any(name.startswith("Azure") for name in names) else None


def _endpoint(client: Any) -> str:
    """Where the requests go: of the SDK's client, or as it was given."""
    sdk = getattr(client, "client", None)
    found = getattr(sdk, "base_url", None) or getattr(client, "endpoint", None)
    return str(found or "")


def _telemetry_name(client: Any) -> str:
    return str(getattr(client, "OTEL_PROVIDER_NAME", "")).lower()
