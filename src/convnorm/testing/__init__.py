"""For users' own tests: made-up histories (`strategies`) and the laws (`laws`).

Needs the extra `testing`; importing convnorm never imports this.
"""
