"""The handoff workflow of a help desk: every answer of the user resumes it, turn by turn."""

from collections.abc import Callable
from typing import Any

import agent_framework as af
from agent_framework.orchestrations import HandoffAgentUserRequest, HandoffBuilder
from framework import agent, said, seen_texts
from handoffs import HANDOFFS_NEED

from convnorm.testing import Reply, call


def get_balance(account: str) -> str:
    """The balance of an account."""
    return f"{account}: 10 EUR"


class Desk:
    """The scripted model: triage hands over, account looks up the balance and answers.

    All texts are different, so whatever the model sees twice in one request is a copy.
    """

    def __init__(self, *before: Any) -> None:
        self.before, self.turn = before, 0

    def __call__(self, request: Any) -> Reply:
        """What whoever asks says next."""
        if request.body["user"] == "triage":
            return Reply(*self.before, call("handoff_to_account"))
        last = request.seen[-1]
        if last.get("role") == "tool" or last.get("type") == "function_call_output":
            return Reply(f"ANSWER-{self.turn}")
        self.turn += 1
        asked = call(
            "get_balance", account=f"account {self.turn}", call_id=f"call_balance_{self.turn}"
        )
        return Reply(*self.before, asked)


class Asked:
    """The scripted model of the help desk, whatever was asked before: its turn is the user's."""

    def __init__(self) -> None:
        self.desk = Desk()

    def __call__(self, request: Any) -> Any:
        """What whoever asks says next."""
        last = request.seen[-1]
        if not (last.get("role") == "tool" or last.get("type") == "function_call_output"):
            users = [text for text in seen_texts(request) if text.startswith("USER-")]
            self.desk.turn = int(users[-1][5]) - 1
        return self.desk(request)


def desk(
    client: Any,
    *,
    approval: str = "never_require",
    providers: Callable[[], Any] = lambda: None,
    **builder: Any,
) -> Any:
    """The workflow, on one client; each agent has the context providers that are made for it."""
    options: dict[str, Any] = {}
    if HANDOFFS_NEED:
        options["require_per_service_call_history_persistence"] = True
    tool = af.tool(get_balance, approval_mode=approval)
    triage = agent(
        client, "triage", instructions="I am triage.", context_providers=providers(), **options
    )
    account = agent(
        client,
        "account",
        instructions="I am account.",
        tools=[tool],
        context_providers=providers(),
        **options,
    )
    made = HandoffBuilder(name="desk", participants=[triage, account], **builder)
    return made.with_start_agent(triage).add_handoff(triage, [account]).build()


def words(asked: list[Any], text: str) -> dict[str, Any]:
    """What a workflow is run with when the user says something: the start, or an answer."""
    if not asked:
        return {"message": said(text)}
    answer = HandoffAgentUserRequest.create_response(text)
    return {"responses": {one.request_id: answer for one in asked}}


async def turn(workflow: Any, asked: list[Any], text: str, *, stream: bool) -> list[Any]:
    """Say something to the workflow; what it asks in the end."""
    return await settled(workflow, words(asked, text), stream=stream)


async def settled(workflow: Any, given: dict[str, Any], *, stream: bool) -> list[Any]:
    """Run the workflow until it asks something that is no approval, approving all of these."""
    while True:
        if stream:
            events = [event async for event in workflow.run(**given, stream=True)]
        else:
            events = list(await workflow.run(**given))
        asked = [event for event in events if event.type == "request_info"]
        approvals = [one for one in asked if not isinstance(one.data, HandoffAgentUserRequest)]
        if not approvals:
            return asked
        responses = {
            one.request_id: one.data.to_function_approval_response(approved=True)
            for one in approvals
        }
        given = {"responses": responses}
