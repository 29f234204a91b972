"""The default registration: a provider whose models repair what they are sent."""

from agents import Model, ModelProvider, MultiProvider

from convnorm import Policy
from convnorm.delivery import Ledger, Link
from convnorm_openai_agents.ledger_keeper import LedgerKeeper
from convnorm_openai_agents.model import NormalizingModel
from convnorm_openai_agents.on_error import OnError


class NormalizingModelProvider(ModelProvider):
    """Gives out the models of `inner`, each of which repairs what it is sent.

    It holds what is known of the server, by conversation. `ledger` is what was known before.
    """

    def __init__(
        self,
        policy: Policy | str | None = None,
        *,
        inner: ModelProvider | None = None,
        ledger: Ledger | None = None,
        on_error: OnError = "send",
    ) -> None:
        self.inner = inner or MultiProvider()
        self.keeper = LedgerKeeper(ledger)
        self._policy = policy
        self.on_error: OnError = on_error

    def ledger_of(
        self, *, previous_response_id: str | None = None, conversation: str | None = None
    ) -> Ledger:
        """What is known behind a link now, to be kept for another provider."""
        return self.keeper.behind(Link(previous_response_id, conversation))

    def get_model(self, model_name: str | None) -> Model:
        """The inner provider's model of this name, with repair."""
        return NormalizingModel(
            self.inner.get_model(model_name),
            self._policy,
            keeper=self.keeper,
            on_error=self.on_error,
        )

    async def aclose(self) -> None:
        """Close the inner provider."""
        await self.inner.aclose()
