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
    POST_CHUNK = 3
    """Write the event's pages to every destination; each write's ticket counts as in flight from now on."""
    REPLAY = 4
    """Feed the calls that came early, in order, as events of their own."""
    REPEAT = 5
    """Feed this same event again, now that the state has changed."""
    TELL_DONE = 6
    """Tell every destination that this writer has written all it has for the room."""
    TELL_PROGRESS = 7
    """Tell every destination that another chunk has landed, so that it renews its lease."""
    TELL_ABORT = 8
    """Tell every counterpart the failure, except the one that told us."""
    TELL_DRAINED = 9
    """Tell every counterpart that nothing of ours can land in its pages any more."""
    ANSWER_ABORT = 10
    """Tell the peer whose abort this is that nothing is under way for it, once that is so."""
    REFUSE = 11
    """Tell the asker of this join or destination that its transfer will not happen, and that nothing is under way."""
    JOIN_WRITERS = 12
    """Tell every writer which life of the room this is, so that either side can call the other from now on."""
    SEND_DESTINATIONS = 13
    """Tell every writer where to write. From here on our pages are exposed to it."""
    FENCE_PEER = 14
    """Have the driver cut the peer of this event off, since its failed write may still be running."""
    RELEASE = 15
    """The pages are Releasable: show it; forget the record if it is cleared."""
    CANCEL_TICKETS = 16
    """Ask the driver for an early end of the room's unfinished writes."""
    CHASE = 17
    """Draining takes long: repeat the abort to the writers that have not answered."""
    FORGET = 18
    """Take the record out of every table and timer, and free its slot (invariant 4)."""
    # -- peers
    GREET = 19
    """Say hello (again), with our layout and the driver's metadata."""
    PROBE = 20
    """Ask for a sign of life at once."""
    LOSE_ROOMS = 21
    """Fail every room of this peer in one pass."""
    DISCONNECT = 22
    """Have the driver cut the peer off; FENCED follows when it is proven."""
    RECONNECT = 23
    """The driver has cut a living peer off after a loud failure: connect it anew."""
    SETTLE_ROOMS = 24
    """Tell every room of this peer that the peer is fenced."""
    FORGET_PEER = 25
    """Take the peer out of every table."""


COMPILER_ONLY = frozenset({Action.ARM, Action.PUBLISH, Action.IGNORED})
