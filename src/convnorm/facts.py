"""What a dialect's survey can say about a history without building anything."""

from enum import StrEnum


class Fact(StrEnum):
    """A reason to wake a pass. A survey may name one too many, never one too few."""

    PAIRING = "calls and results do not match one to one, in order and in place"
    REPEATED_CALL = "a call id is used by more than one call"
    REPEATED_ID = "a message or item id occurs twice"
    UNSTORED = "items name ids of a server that stores nothing"
    STORE_UNKNOWN = "items have ids, and nobody says whether the server stores them"
    EMPTY = "a message has an empty content or an empty list of calls"
    REASONING = "reasoning stands alone, or where it may not be taken, or is missed"
    ARGUMENTS = "arguments of a call are no text, or no whole one"
    IDS = "an id or a name has a form that the target may refuse"
    LINK = "the request continues something, or a ledger says what the server holds"
    FIELDS = "a key, a value or an item is not one of those that every server takes"
    ROLES = "a role is foreign or refused, or the turns stand in an order that may be refused"
    PARTS = "a content part has a type, or stands in a place, that the target may refuse"
    MEDIA = "there are images, sounds or files"
    SOURCES = "the messages are labelled with the source they came from"
    SHAPE = "something has a shape that no pass repairs"
