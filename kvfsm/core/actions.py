"""What `step` asks of its surroundings. A spec's `do`, `enter` and `exit` name these, in lower case.

An action is an order, not a question: it carries no result back. Whatever it leads to comes back as an event. The
runtime, the simulator and the checker each give every member a meaning; the sentence here is what they must agree on.
"""

from __future__ import annotations

import enum


class Action(enum.IntEnum):
    # -- put in by the compiler of the table, never written in a spec
    ARM = 0
    """`record.deadline` changed: move the record's one timer."""
    PUBLISH = 1
    """The visible state changed: show it to the scheduler, run the embedder's hooks."""
    IGNORED = 2
    """The event changed nothing, on purpose: count it (invariant 5)."""
    # -- rooms
    RESOLVE = 3
    """Find the peers that write for this room: RESOLVED or UNRESOLVED follows."""
    POST_CHUNK = 4
    """Write the event's pages to every destination; for each one WRITTEN, WRITE_FAILED or WRITE_LOST follows."""
    REPLAY = 5
    """Feed the calls that came early, in order, as events of their own."""
    REPEAT = 6
    """Feed this same event again, now that the state has changed."""
    TELL_DONE = 7
    """Tell every destination that this writer has written all it has for the room."""
    TELL_PROGRESS = 8
    """Tell every destination that another chunk has landed, so that it renews its lease."""
    TELL_ABORT = 9
    """Tell every counterpart the failure, except the one that told us."""
    TELL_DRAINED = 10
    """Tell every counterpart that nothing of ours can land in its pages any more."""
    ANSWER_ABORT = 11
    """Tell the sender of this abort that nothing is under way for it: now, or with TELL_DRAINED once that is so."""
    REFUSE = 12
    """Tell the asker of this join or destination that its transfer will not happen, and that nothing is under way."""
    JOIN_WRITERS = 13
    """Tell every writer which life of the room this is, so that either side can call the other from now on."""
    SEND_DESTINATIONS = 14
    """Tell every writer where to write. From here on our pages are exposed to it."""
    FENCE_PEER = 15
    """Have the peer of this event cut off, since its failed write may still be running."""
    CANCEL_TICKETS = 16
    """Ask the driver for an early end of the room's unfinished writes."""
    CHASE = 17
    """Draining takes long: repeat the abort to the writers that have not answered."""
    RELEASE = 18
    """The pages are Releasable: show it; drop the record altogether if the room is cleared."""
    FORGET = 19
    """The id is free again: take the record out of the table of open rooms and free its slot (invariant 4)."""
    # -- peers
    GREET = 20
    """Say hello (again), with our layout and the driver's metadata."""
    PROBE = 21
    """Ask for a sign of life at once."""
    LOSE_ROOMS = 22
    """Fail every room of this peer in one pass."""
    DISCONNECT = 23
    """Have the driver cut the peer off; FENCED follows when it is proven."""
    SETTLE_ROOMS = 24
    """Tell every room of this peer that the peer is fenced."""
    FORGET_PEER = 25
    """Take the peer out of every table."""
    # -- rooms, once more
    STASH = 26
    """Keep this early word for the next room of the same id: this life of it has ended here."""


COMPILER_ONLY = frozenset({Action.ARM, Action.PUBLISH, Action.IGNORED})
