import os

import openai


def test_the_lane_has_the_sdk_it_is_about() -> None:
    """The installed openai SDK has the major version that the lane names."""
    assert openai.VERSION.split(".")[0] == os.environ["CONVNORM_LANE_OPENAI"]
