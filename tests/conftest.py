"""How deep hypothesis looks, and which tests belong to which lane."""

import os

from hypothesis import HealthCheck, settings

EXAMPLES = 100

# A slow machine is no fault of a strategy: too_slow would be a timing assertion by another name.
settings.register_profile(
    "dev", max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", settings.get_profile("dev"), max_examples=EXAMPLES, derandomize=True
)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=EXAMPLES * 10)
settings.load_profile(os.environ.get("CONVNORM_PROFILE", "dev"))

# The tests on real SDK objects run in the lanes that have an SDK.
SDK_LANES = {"CONVNORM_LANE_OPENAI": "sdk", "CONVNORM_LANE_ANTHROPIC": "anthropic_sdk"}
collect_ignore = [folder for name, folder in SDK_LANES.items() if name not in os.environ]
