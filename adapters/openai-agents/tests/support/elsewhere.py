"""Another process: takes paused runs as text, decides on them and ends them."""

import asyncio
import json
import sys
from typing import Any

from agents import OpenAIProvider, RunState
from convnorm_openai_agents import NormalizingModelProvider, ledger_from_state
from openai import AsyncOpenAI, BadRequestError
from play import approve, config, operator, run


async def resumed(
    client: AsyncOpenAI, text: str, decision: str, *, stream: bool, safe: bool
) -> str | None:
    """How a run ends, of which this process knows its text alone; None if it is refused."""
    agent = operator()
    state: RunState[Any] = await RunState.from_string(agent, text)
    state = await approve(state, agent, decision, serialise=False)
    provider: Any = OpenAIProvider(openai_client=client)
    if safe:
        ledger = ledger_from_state(state)
        provider = NormalizingModelProvider(inner=provider, ledger=ledger, on_error="raise")
    try:
        done = await run(agent, state, stream=stream, run_config=config(provider))
    except BadRequestError:
        return None
    return str(done.final_output)


async def main(base_url: str, safe: bool, jobs: list[dict[str, Any]]) -> None:
    """Resume every run that is told of, one after the other."""
    async with AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
        sys.stdout.write(json.dumps([await resumed(client, **job, safe=safe) for job in jobs]))


if __name__ == "__main__":
    asyncio.run(main(**json.load(sys.stdin)))
