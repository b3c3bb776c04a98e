"""The states that a spec may name, with the numbers that the rest of the world knows them by."""

from __future__ import annotations

import enum


class KVPoll(enum.IntEnum):
    """What a scheduler sees of a room. The numbering lets ranks agree by a MIN all-reduce (Failed wins, Success last).

    `Cleared` never shows in the published column of an open room: it is what is left of a record while its pages
    drain after `clear()`.
    """

    Failed = 0
    Bootstrapping = 1
    WaitingForInput = 2
    Transferring = 3
    Success = 4
    Cleared = 5


class Custody(enum.IntEnum):
    """Who may touch a room's pages (invariant 3): the scheduler may free or reuse them only at Releasable."""

    Held = 0
    Draining = 1
    Releasable = 2


class PeerState(enum.IntEnum):
    """One incarnation of one remote process, as this process sees it."""

    Connecting = 0
    Alive = 1
    Suspect = 2
    Dead = 3


class Role(enum.IntEnum):
    SENDER = 0
    """Prefill: owns the source pages and writes."""
    RECEIVER = 1
    """Decode: owns the destination pages and is written to."""


STATES: dict[str, type[enum.IntEnum]] = {
    "sender": KVPoll,
    "receiver": KVPoll,
    "custody": Custody,
    "peer": PeerState,
}
"""Machine name -> the enum whose members its spec must declare, all of them and no other."""

TERMINAL = frozenset({KVPoll.Failed, KVPoll.Success, KVPoll.Cleared})
