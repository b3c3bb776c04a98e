"""Everything that can happen to a room or a peer, as typed data.

The messages that peers send one another *are* events (h11's idea): what is decoded from the wire is what `step` takes.
`KIND` is the event's column in the dense table; its lower-case name is the event's name in the specs.
"""

from __future__ import annotations

import enum
from typing import Any, ClassVar

import msgspec


class Kind(enum.IntEnum):
    # scheduler, sender
    ANNOUNCE = 0
    SEND = 1
    # scheduler, receiver
    INIT = 2
    GRANT = 3
    # scheduler, both
    ABORT = 4
    CLEAR = 5
    # messages to a sender
    JOIN = 6
    DESTINATION = 7
    # messages to a receiver
    PROGRESS = 8
    DONE = 9
    DRAINED = 10
    # messages to either
    PEER_ABORT = 11
    # driver
    WRITTEN = 12
    WRITE_FAILED = 13
    WRITE_LOST = 14
    FENCED = 15
    # runtime
    RESOLVED = 16
    UNRESOLVED = 17
    DEADLINE = 18
    PEER_LOST = 19
    # custody
    SETTLE = 20
    # peers
    HEARD = 21
    BYE = 22
    REPLACED = 23
    REFUSED = 24
    CUT = 25


class Cause(str, enum.Enum):
    """Why a room failed. The value is what travels, what is logged and what metrics are labelled with."""

    ABORTED = "aborted"
    """The scheduler of the rank named in the failure called `abort()`."""
    CLEARED = "cleared"
    """The scheduler of the rank named in the failure called `clear()` on a live room."""
    DEADLINE = "deadline"
    """A state lasted longer than its deadline."""
    PEER_LOST = "peer_lost"
    """The peer's process is dead, silent for too long, or was replaced by a new incarnation."""
    DRIVER_ERROR = "driver_error"
    """The transport driver could not write."""
    PROTOCOL_ERROR = "protocol_error"
    """The two sides, or the scheduler's own calls, contradict one another."""
    LAYOUT_MISMATCH = "layout_mismatch"
    """The two pools cannot be mapped onto one another."""
    REGISTRY = "registry"
    """The bootstrap registry has no usable answer."""
    REFUSED = "refused"
    """The other side does not take part: its room has ended already, or is engaged elsewhere."""
    CLOSED = "closed"
    """The manager of the rank named in the failure was closed."""


class Failure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The first cause of a failed room (invariant 12): what, where, and in which state."""

    cause: Cause
    detail: str
    """One sentence for an operator, with the values that matter."""
    rank: str
    """Where it came from, e.g. ``prefill 0`` or ``decode 0``."""
    state: str
    """The visible state of the room there when it happened."""

    def __str__(self) -> str:
        return f"{self.cause.value}: {self.detail} (from {self.rank}, in {self.state})"


class Event(msgspec.Struct, gc=False):
    """Base of all events. Subclasses set `KIND`."""

    KIND: ClassVar[Kind]


# ---------------------------------------------------------------------------------------------- scheduler -> room


class Announce(Event):
    """Sender `init`: the room has `num_pages` pages, and its metadata in aux slot `aux_index` (-1: none)."""

    KIND: ClassVar[Kind] = Kind.ANNOUNCE
    num_pages: int
    aux_index: int


class Send(Event):
    """One chunk. `pages` and `state_indices` are 1-d int64 arrays of this process's own pool."""

    KIND: ClassVar[Kind] = Kind.SEND
    count: int
    last: bool
    pages: Any
    state_indices: Any = None
    first: int = 0
    """Position of the chunk's first page within the room; set by `step`."""


class Init(Event):
    """Receiver `init`: the data-parallel rank of the prefill that will write; -1 asks for the only one there is."""

    KIND: ClassVar[Kind] = Kind.INIT
    dp_rank: int


class Grant(Event):
    """Receiver `send_metadata`: the pages, aux slot and state slots that writers may write to."""

    KIND: ClassVar[Kind] = Kind.GRANT
    pages: Any
    aux_index: int
    state_indices: Any = None


class Abort(Event):
    KIND: ClassVar[Kind] = Kind.ABORT
    failure: Failure


class Clear(Event):
    """`clear()`; `failure` is used only if the room is live, which it then aborts."""

    KIND: ClassVar[Kind] = Kind.CLEAR
    failure: Failure


# ---------------------------------------------------------------------------------------------- peer -> room


class Message(msgspec.Struct, array_like=True, gc=False):
    """Base of the events that travel. `peer` is never trusted from the wire: the receiving runtime overwrites it."""

    KIND: ClassVar[Kind]


class Join(Message, tag=1):
    """Decode rank `rank` of `need` takes part in `room`; `epoch` names this life of its side of the room."""

    KIND: ClassVar[Kind] = Kind.JOIN
    room: int
    epoch: int
    rank: int
    need: int
    peer: int = 0


class Destination(Message, tag=2):
    """Where to write: the decode rank's page, state (both packed little-endian int64) and aux indices (-1: none)."""

    KIND: ClassVar[Kind] = Kind.DESTINATION
    room: int
    epoch: int
    rank: int
    need: int
    aux_index: int
    pages: bytes
    states: bytes
    peer: int = 0

    @property
    def num_pages(self) -> int:
        return len(self.pages) // 8


class Progress(Message, tag=3):
    """Writer `rank` is at work on the room and has landed another chunk, or has it waiting: renew the lease."""

    KIND: ClassVar[Kind] = Kind.PROGRESS
    room: int
    epoch: int
    rank: int
    peer: int = 0


class Done(Message, tag=4):
    """Writer `rank` has landed every byte that it has for the room."""

    KIND: ClassVar[Kind] = Kind.DONE
    room: int
    epoch: int
    rank: int
    peer: int = 0


class Drained(Message, tag=5):
    """Nothing that writer `rank` started for this epoch can land any more; its side of the room is over."""

    KIND: ClassVar[Kind] = Kind.DRAINED
    room: int
    epoch: int
    rank: int
    peer: int = 0


class PeerAbort(Message, tag=6):
    """The other side failed. `epoch` is the receiver's; `to` is the role of the side addressed."""

    KIND: ClassVar[Kind] = Kind.PEER_ABORT
    room: int
    epoch: int
    rank: int
    to: int
    failure: Failure
    peer: int = 0


# ---------------------------------------------------------------------------------------------- driver -> room


class Written(Event):
    KIND: ClassVar[Kind] = Kind.WRITTEN
    ticket: int
    peer: int


class WriteFailed(Event):
    """Quiet: nothing of the ticket can land or be read any more. Also when the driver refused it: then ticket is 0."""

    KIND: ClassVar[Kind] = Kind.WRITE_FAILED
    ticket: int
    peer: int
    failure: Failure


class WriteLost(Event):
    """Loud: the ticket failed, but its bytes may still land or be read; only FENCED settles it."""

    KIND: ClassVar[Kind] = Kind.WRITE_LOST
    ticket: int
    peer: int
    failure: Failure


class Fenced(Event):
    KIND: ClassVar[Kind] = Kind.FENCED
    peer: int


# ---------------------------------------------------------------------------------------------- runtime -> room


class Resolved(Event):
    """The prefill side is known. `writers`: the peer of each writer rank, in rank order."""

    KIND: ClassVar[Kind] = Kind.RESOLVED
    writers: tuple[int, ...]


class Unresolved(Event):
    """The prefill side cannot be known; there is no use in asking again."""

    KIND: ClassVar[Kind] = Kind.UNRESOLVED
    failure: Failure


class Deadline(Event):
    KIND: ClassVar[Kind] = Kind.DEADLINE
    failure: Failure | None = None


class PeerLost(Event):
    KIND: ClassVar[Kind] = Kind.PEER_LOST
    peer: int
    failure: Failure


class Settle(Event):
    """Look again whether anything can still touch the pages."""

    KIND: ClassVar[Kind] = Kind.SETTLE


# ---------------------------------------------------------------------------------------------- peers


class Heard(Event):
    KIND: ClassVar[Kind] = Kind.HEARD


class Bye(Event):
    KIND: ClassVar[Kind] = Kind.BYE
    reason: str = ""


class Replaced(Event):
    KIND: ClassVar[Kind] = Kind.REPLACED
    reason: str = ""


class Refused(Event):
    KIND: ClassVar[Kind] = Kind.REFUSED
    reason: str = ""


class Cut(Event):
    """This side will have no more to do with the peer: a write to it failed loudly, or the manager closes."""

    KIND: ClassVar[Kind] = Kind.CUT
    reason: str = ""


RoomMessage = Join | Destination | Progress | Done | Drained | PeerAbort
