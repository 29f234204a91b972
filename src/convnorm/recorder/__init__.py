"""Streams that end early lose nothing: begin before the first update, finish on every way out."""

from convnorm.mergers import MERGERS, Answer, Merger, Note
from convnorm.recorder.recorder import Recorder, Recording
from convnorm.recorder.turn import TurnReport
from convnorm.recorder.updates import Updates
from convnorm.recorder.updates_sync import SyncUpdates

__all__ = [
    "MERGERS",
    "Answer",
    "Merger",
    "Note",
    "Recorder",
    "Recording",
    "SyncUpdates",
    "TurnReport",
    "Updates",
]
