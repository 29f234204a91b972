"""What convnorm costs, as ratios measured side by side in one process.

`python benchmarks/run.py` prints each workload's cost as a multiple of `json.dumps` of the same
messages, the growth on shapes made to hurt, and the import time as a multiple of pydantic's.
Absolute times mean nothing on a shared machine, so none are printed.
"""

import gc
import json
import math
import subprocess
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import workload
from convnorm import Context, normalize

ROUNDS = 15
UNSTORED = Context(store=False)


def seconds(work: Callable[[], object]) -> float:
    """One run."""
    start = perf_counter()
    work()
    return perf_counter() - start


def ratio(work: Callable[[], object], other: Callable[[], object]) -> float:
    """The median over alternating rounds of how much longer `work` takes than `other`."""
    work(), other()
    return median(seconds(work) / seconds(other) for _ in range(ROUNDS))


def growth(shape: str) -> float:
    """The exponent of the cost between 500 and 2,000 messages, from the best of several runs."""
    small, large = workload.hurtful(500)[shape], workload.hurtful(2000)[shape]

    def best(shape: tuple[str, workload.Messages, Context]) -> float:
        target, messages, context = shape
        return min(seconds(lambda: normalize(messages, target, context=context)) for _ in range(5))

    return math.log(best(large) / best(small)) / math.log(len(large[1]) / len(small[1]))


def import_ratio() -> float:
    """How much longer `import convnorm` takes than `from pydantic import BaseModel`."""

    def run(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True))  # noqa: S603  # our own interpreter

    ours, theirs, bare = (
        min(run(code) for _ in range(7))
        for code in ("import convnorm", "from pydantic import BaseModel", "pass")
    )
    return (ours - bare) / (theirs - bare)


def main() -> None:
    """Print everything."""
    clean, large = workload.chat(1000), workload.chat(100_000)
    items = workload.responses(1000, ids=False)
    steady = workload.responses(1000, ids=True)
    broken = workload.faulty(1000)
    same = normalize(clean, "openai.chat")
    assert all(a is b for a, b in zip(same, clean, strict=True)), (
        "a clean history was touched"
    )  # a benchmark of wrong work is worthless
    size = len(json.dumps(clean)) / len(clean)
    print(f"{len(clean)} chat messages of {size:.0f} bytes; each row: x json.dumps of the same")
    for name, work, data in (
        ("clean chat, 1,000 messages", lambda: normalize(clean, "openai.chat"), clean),
        ("clean chat, 100,000 messages", lambda: normalize(large, "openai.chat"), large),
        ("clean responses", lambda: normalize(items, "openai.responses"), items),
        (
            "responses with ids under store=False (never clean)",
            lambda: normalize(steady, "openai.responses", context=UNSTORED),
            steady,
        ),
        ("faulty chat, with the final check", lambda: normalize(broken, "openai.chat"), broken),
    ):
        gc.collect()
        print(f"  {ratio(work, lambda data=data: json.dumps(data)):7.3f}  {name}")  # type: ignore[misc]  # bound now, called now
    print("growth exponent, 500 to 2,000 messages (1 is linear)")
    for shape in workload.hurtful(500):
        print(f"  {growth(shape):7.2f}  {shape}")
    print(f"import: {import_ratio():.2f} x pydantic's BaseModel")


if __name__ == "__main__":
    main()
