"""Every error convnorm raises, under one root.

ConvnormError
├── DialectError        the input is not a history in the shape the policy names
├── PolicyError         the policy or the context cannot be used as given
├── ChangeError         a pass set to `on_change="raise"` would have changed something
├── UnrepairableError   the history breaks a rule that no pass may repair silently
├── NotReadyError       the last call is still being answered: there is nothing to send yet
├── NeedsRequestError   the repair touches the request, not only its list of messages
├── LedgerError         a ledger cannot be read, or contradicts another one
└── StoreError          a store cannot be read or written
    └── ConflictError   somebody else has written to the session since it was loaded
"""


class ConvnormError(Exception):
    """The root: catch this to catch everything convnorm raises."""


class DialectError(ConvnormError):
    """The input is not a history in the shape the policy names, or the shape is ambiguous."""


class PolicyError(ConvnormError):
    """The policy, or the facts given for this call, cannot be used."""


class ChangeError(ConvnormError):
    """A pass whose `on_change` is `raise` found something to change; nothing was changed."""


class UnrepairableError(ConvnormError):
    """The history breaks a rule that must not be repaired silently."""

    def __init__(self, rule: str, position: str, remedy: str) -> None:
        self.rule, self.position, self.remedy = rule, position, remedy
        super().__init__(f"{position}: {remedy} [{rule}]")


class NotReadyError(ConvnormError):
    """The history ends in a call that is still being answered: wait for its result."""


class NeedsRequestError(ConvnormError):
    """The repair changes the request itself: call `normalize_request` with the whole body."""


class LedgerError(ConvnormError):
    """A ledger that cannot be read, or that contradicts what is to be put into it."""


class StoreError(ConvnormError):
    """A store cannot be read or written as it is."""


class ConflictError(StoreError):
    """Somebody else has written to the session since it was loaded; nothing was stored.

    Load the session anew, look whether your items still fit behind what came in between, and commit
    them with the new version.
    """

    def __init__(self, session: str, expected: int, found: int) -> None:
        self.session, self.expected, self.found = session, expected, found
        super().__init__(
            f"session {session!r} is in version {found} and was expected in version {expected}: "
            "nothing was stored; load it anew and commit again"
        )
