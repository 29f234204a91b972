"""convnorm for Microsoft Agent Framework: not built yet, there is nothing to import from here."""
