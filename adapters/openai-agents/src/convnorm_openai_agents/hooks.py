"""Hooks that tell the ledger what tools returned."""

from typing import Any

from agents import ItemHelpers, RunHooks

from convnorm_openai_agents.ledger_keeper import LedgerKeeper
from convnorm_openai_agents.on_error import OnError, guarded
from convnorm_openai_agents.provider import NormalizingModelProvider


class Hooks(RunHooks[Any]):
    """Tells the provider of every output; `chain` are hooks of your own.

    `source` is the provider, or the keeper that models of yours share; `on_error` is its own.
    """

    def __init__(
        self,
        source: NormalizingModelProvider | LedgerKeeper,
        chain: RunHooks[Any] | None = None,
        *,
        on_error: OnError | None = None,
    ) -> None:
        self.keeper = source if isinstance(source, LedgerKeeper) else source.keeper
        own: OnError = "send" if isinstance(source, LedgerKeeper) else source.on_error
        self._on_error: OnError = on_error or own
        self.chain: RunHooks[Any] = chain or RunHooks()

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """Note the output."""
        called = getattr(context, "tool_call", None)
        if called is not None and called.type == "function_call":
            with guarded(
                self._on_error, f"the ledger does not know the output of {called.call_id}"
            ):
                output = ItemHelpers.tool_call_output_item(called, result)
                self.keeper.observed_output(output, called)
        await self.chain.on_tool_end(context, agent, tool, result)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """Pass on."""
        await self.chain.on_tool_start(context, agent, tool)

    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: Any, input_items: Any
    ) -> None:
        """Pass on."""
        await self.chain.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Pass on."""
        await self.chain.on_llm_end(context, agent, response)

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """Pass on."""
        await self.chain.on_agent_start(context, agent)

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        """Pass on."""
        await self.chain.on_agent_end(context, agent, output)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """Pass on."""
        await self.chain.on_handoff(context, from_agent, to_agent)
