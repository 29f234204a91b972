"""Agent Framework as the tests use it: one spelling for what its releases spell differently."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import agent_framework as af
import openai
from agent_framework import azure
from agent_framework import openai as clients
from packaging.version import Version

from convnorm.testing import StrictServer
from convnorm.testing.strict_server.record import Request

CORE = Version(version("agent-framework-core"))
RELEASED = Version("1.0.0") <= CORE
"""The clients and providers have their final names."""
MODEL = "gpt-5.1"


@asynccontextmanager
async def responses_client(server: StrictServer, **options: Any) -> AsyncIterator[Any]:
    """The framework's own client for the Responses API."""
    async with openai.AsyncOpenAI(**_key(base_url=server.base_url)) as sdk:
        yield _client("OpenAIChatClient", "OpenAIResponsesClient", sdk, options)


@asynccontextmanager
async def chat_client(server: StrictServer, **options: Any) -> AsyncIterator[Any]:
    """The framework's own client for Chat Completions."""
    async with openai.AsyncOpenAI(**_key(base_url=server.base_url)) as sdk:
        yield _client("OpenAIChatCompletionClient", "OpenAIChatClient", sdk, options)


@asynccontextmanager
async def azure_client(server: StrictServer, **options: Any) -> AsyncIterator[Any]:
    """The client for the Responses API as Azure has it."""
    where = {"azure_endpoint": server.url, "api_version": "preview"}
    async with openai.AsyncAzureOpenAI(**_key(**where)) as sdk:
        if RELEASED:
            yield _client("OpenAIChatClient", "", sdk, options)
        else:
            yield azure.AzureOpenAIResponsesClient(
                deployment_name=MODEL, endpoint=server.url, api_key="none", async_client=sdk
            )


@asynccontextmanager
async def azure_chat_client(server: StrictServer, **options: Any) -> AsyncIterator[Any]:
    """The client for Chat Completions as Azure has it."""
    where = {"azure_endpoint": server.url, "api_version": "2024-10-21"}
    async with openai.AsyncAzureOpenAI(**_key(**where)) as sdk:
        if RELEASED:
            yield _client("OpenAIChatCompletionClient", "", sdk, options)
        else:
            yield azure.AzureOpenAIChatClient(
                deployment_name=MODEL, endpoint=server.url, api_key="none", async_client=sdk
            )


@asynccontextmanager
async def foundry_client(server: StrictServer, **options: Any) -> AsyncIterator[Any]:
    """The client for the Responses API at an endpoint of Foundry, which leads to the server."""

    async def lead(request: Any) -> None:
        host, port = server.url.removeprefix("http://").split(":")
        path = request.url.path.removeprefix("/api/projects/p")
        request.url = request.url.copy_with(scheme="http", host=host, port=int(port), path=path)

    options_of_sdk = _key(base_url=FOUNDRY)
    options_of_sdk["http_client"].event_hooks = {"request": [lead]}
    async with openai.AsyncOpenAI(**options_of_sdk) as sdk:
        yield _client("OpenAIChatClient", "OpenAIResponsesClient", sdk, options)


FOUNDRY = "https://mine.services.ai.azure.com/api/projects/p/openai/v1/"
CLIENTS = {
    "responses": responses_client,
    "chat": chat_client,
    "azure": azure_client,
    "azure-chat": azure_chat_client,
    "foundry": foundry_client,
}


def _key(**options: str) -> dict[str, Any]:
    # Reading the certificates would take longer than many a test, and nothing here is encrypted.
    plain = openai.DefaultAsyncHttpxClient(verify=False)
    return {"api_key": "none", "max_retries": 0, "http_client": plain, **options}


def _client(name: str, before: str, sdk: openai.AsyncOpenAI, options: dict[str, Any]) -> Any:
    if RELEASED:
        return getattr(clients, name)(model=MODEL, async_client=sdk, **options)
    return getattr(clients, before)(model_id=MODEL, async_client=sdk, **options)


def agent(client: Any, name: str, **options: Any) -> Any:
    """An agent that signs its requests with its name, so that the server can tell who asks."""
    defaults = {"user": name, **options.pop("default_options", {})}
    return af.Agent(client=client, name=name, default_options=defaults, **options)


def said(text: str, role: str = "user") -> Any:
    """A message of one text."""
    return af.Message(role, [text])


async def run(one: Any, message: Any, *, stream: bool, **options: Any) -> Any:
    """The response of an agent or a workflow, however it comes."""
    if not stream:
        return await one.run(message, **options)
    running = one.run(message, stream=True, **options)
    async for _ in running:
        pass
    return await running.get_final_response()


def seen_texts(request: Request) -> list[str]:
    """Every text that the model saw in a request, in order."""
    return [text for item in request.seen for text in _texts(item)]


def _texts(item: Any) -> list[str]:
    content = item.get("content")
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or () if "text" in part]
