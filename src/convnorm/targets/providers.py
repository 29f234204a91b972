"""The providers, each as its difference from the API it speaks. A new server is a new record."""

from convnorm.targets.target import Provider

PROVIDERS = {
    "anthropic": Provider(),
    "anthropic-legacy": Provider(),  # gateways that still enforce what the first party lifted
    "openai": Provider(),
    "azure": Provider(),
    # The project endpoint refuses reasoning without its id, and a group keeps all ids or none.
    "azure-foundry": Provider({"openai.responses": {"unstored_ids": "keep"}}),
    "bedrock": Provider(),
    "codex-backend": Provider(),
    "copilot": Provider(),
    "dashscope": Provider(),
    "deepseek": Provider(),
    "google": Provider(),
    "groq": Provider(),
    "llama.cpp": Provider(),
    "mistral": Provider(),
    "mlx-vlm": Provider(),
    "moonshot": Provider(),
    "ollama": Provider(),
    "openrouter": Provider(),
    "sglang": Provider(),
    # vLLM validates against the SDK's types (an output message has its id), and gpt-oss reads
    # its reasoning back as plain text.
    "vllm": Provider({"openai.responses": {"unstored_ids": "keep", "reasoning_by_value": True}}),
    "vertex": Provider(),
    "volcengine": Provider(),
    "xai": Provider(),
}
