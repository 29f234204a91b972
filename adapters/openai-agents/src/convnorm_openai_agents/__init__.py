"""convnorm for the OpenAI Agents SDK: not built yet, there is nothing to import from here."""
