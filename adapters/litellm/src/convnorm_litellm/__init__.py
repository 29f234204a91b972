"""convnorm for LiteLLM: not built yet, there is nothing to import from here."""
