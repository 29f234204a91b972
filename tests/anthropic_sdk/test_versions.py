import os

import anthropic


def test_the_lane_has_the_sdk_it_is_about() -> None:
    """The installed anthropic SDK has the major version that the lane names."""
    assert os.environ["CONVNORM_LANE_ANTHROPIC"] == anthropic.__version__.split(".")[0]
