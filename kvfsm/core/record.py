"""What the machines work on: one slotted record a room, one a peer.

`state`, `custody` and `deadline` are written by `kvfsm.core.table.step` alone; the rest of the machine's fields by the
updates in `kvfsm.core.rules`, which `step` calls. The fields under "of the runtime" mean nothing to the machines.

Sets of ranks are bit masks: bit r stands for rank r of the other side.
"""

from __future__ import annotations

from math import inf
from typing import Any

from kvfsm.core.events import Destination, Failure, Grant, Join, Send
from kvfsm.core.states import Custody, KVPoll, PeerState, Role

_NO_LINKS: dict[int, Join | Destination] = {}


class Room:
    """One side of one transfer."""

    __slots__ = (
        "__weakref__",
        "announced",
        "aux_index",
        "custody",
        "deadline",
        "done",
        "dp_rank",
        "epoch",
        "exposed",
        "failure",
        "grant",
        "handle",
        "home",
        "in_flight",
        "joined",
        "last_sent",
        "links",
        "loud",
        "need",
        "patience",
        "queue",
        "role",
        "room",
        "sent_pages",
        "settled",
        "slot",
        "state",
        "tick",
        "tickets",
        "told_by",
        "writers",
    )

    def __init__(self, role: int, room: int, epoch: int = 0, home: str = "") -> None:
        self.role = role
        self.room = room
        self.epoch = epoch
        """Receiver: this life of the room id, unique among all lives of all rooms of the process."""
        self.home = home
        """This rank's name in failures, such as ``prefill 0``."""
        self.state: int = KVPoll.Bootstrapping
        self.custody: int = Custody.Held
        self.deadline = inf
        """When DEADLINE is due, in seconds of the runtime's clock; inf: never."""
        self.patience = inf
        """How many seconds the deadline was set ahead."""
        self.failure: Failure | None = None
        self.told_by = 0
        """The peer whose abort failed the room; it need not be told."""
        # -- sender
        self.need = 0
        """Decode ranks that take part (0: not known yet)."""
        self.joined = 0
        """Decode ranks that have given their destination."""
        self.links: dict[int, Join | Destination] = _NO_LINKS
        """Decode rank -> the last word of that rank: a join, or where to write."""
        self.announced = -1
        """Pages that the scheduler will send in all; -1: `init` has not been called."""
        self.aux_index = -1
        self.sent_pages = 0
        self.last_sent = False
        self.in_flight = 0
        """Writes that were ordered and have not ended."""
        self.loud: tuple[int, ...] = ()
        """Peers to which a failed write of this room may still be running."""
        # -- receiver
        self.dp_rank = -1
        self.writers: tuple[int, ...] = ()
        """Peer of each writer rank."""
        self.grant: Grant | None = None
        self.exposed = 0
        """Writer ranks that have been told where to write."""
        self.done = 0
        """Writer ranks that have landed everything."""
        self.settled = 0
        """Writer ranks of which nothing can land any more."""
        # -- both
        self.queue: list[Send | Grant] | None = None
        """Calls that came before their state, in order."""
        # -- of the runtime
        self.slot = -1
        self.tick = 0
        self.tickets: set[int] | None = None
        self.handle: Any = None

    def __repr__(self) -> str:
        return (
            f"<{Role(self.role).name.lower()} room {self.room} epoch {self.epoch}: {KVPoll(self.state).name},"
            f" {Custody(self.custody).name}>"
        )


class Peer:
    """One session between this process and one incarnation of another."""

    __slots__ = ("deadline", "greetings", "max_greetings", "number", "patience", "reason", "state", "tick")

    def __init__(self, number: int, max_greetings: int = 1) -> None:
        self.number = number
        """The driver's name for the session: small, positive, never used again."""
        self.state: int = PeerState.Connecting
        self.deadline = inf
        self.patience = inf
        self.reason = ""
        """Why it is dead."""
        self.greetings = 0
        self.max_greetings = max_greetings
        # -- of the runtime
        self.tick = 0
