"""A small model of a Responses server: what it holds, and what the model sees. It shares no code
with the ledger, the passes or the rules.
"""

from typing import Any

Item = dict[str, Any]


class ModelServer:
    """Responses and conversations, by id; every id is given once."""

    def __init__(self) -> None:
        self.responses: dict[str, Item] = {}
        self.conversations: dict[str, list[Item]] = {}
        self.count = 0

    def new_id(self, prefix: str) -> str:
        """An id that nobody mints twice."""
        self.count += 1
        return f"{prefix}_{self.count:024x}"

    def before(self, request: Item) -> list[Item]:
        """What it puts before the input of a request."""
        if request.get("conversation"):
            return list(self.conversations[request["conversation"]])
        named = request.get("previous_response_id")
        if named is None:
            return []
        held = self.responses[named]
        assert held["stored"], "an unstored response was continued"
        return [*self.before(held), *held["input"], *held["output"]]

    def view(self, request: Item) -> list[Item]:
        """What the model sees of a request."""
        return [*self.before(request), *request["input"]]

    def answer(self, request: Item, output: list[Item]) -> Item:
        """Take a request in, and give the body of its response."""
        own = self.new_id("resp")
        stored = request.get("store") is not False
        self.responses[own] = {
            "input": list(request["input"]),
            "output": output,
            "previous_response_id": request.get("previous_response_id"),
            "conversation": request.get("conversation"),
            "stored": stored,
        }
        if request.get("conversation"):
            self.conversations[request["conversation"]] += [*request["input"], *output]
        return {"id": own, "object": "response", "status": "completed", "output": output}

    def forget(self, request: Item) -> None:
        """What the request continued expires."""
        if request.get("conversation"):
            del self.conversations[request["conversation"]]
        elif request.get("previous_response_id"):
            self.responses[request["previous_response_id"]]["stored"] = False

    def state(self) -> Item:
        """All of it as plain data."""
        return {"responses": self.responses, "conversations": self.conversations}
