"""What the names in a spec mean: guards (questions) and updates (changes to the record's own counters and masks).

A guard is `(record, event) -> bool` and changes nothing. An update is `(record, event) -> None` and asks for nothing:
whatever concerns the world is an action. The docstring of each is the sentence that the generated tables show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kvfsm.core.events import Cause, Destination, Failure
from kvfsm.core.states import KVPoll, Role

Guard = Callable[[Any, Any], bool]
Update = Callable[[Any, Any], None]

GUARDS: dict[str, Guard] = {}
UPDATES: dict[str, Update] = {}


def guard(function: Guard) -> Guard:
    GUARDS[function.__name__] = function
    return function


def update(function: Update) -> Update:
    UPDATES[function.__name__] = function
    return function


# ------------------------------------------------------------------------------------------------------ sender: guards


@guard
def lengths_agree(room: Any, event: Any) -> bool:
    """the announced number of pages and that of every known destination are the same, as far as both are known"""
    if isinstance(event, Destination):
        return room.announced < 0 or room.announced == event.num_pages
    return all(
        link.num_pages == event.num_pages for link in room.links.values() if isinstance(link, Destination)
    )


@guard
def acceptable(room: Any, event: Any) -> bool:
    """the rank's place in the room is free or its own already, and it counts as many ranks as the others do"""
    if not 0 <= event.rank < event.need or (room.need and event.need != room.need.bit_length()):
        return False
    link = room.links.get(event.rank)
    return link is None or (link.epoch == event.epoch and link.peer == event.peer)


@guard
def completes(room: Any, event: Any) -> bool:
    """with this destination, that of every decode rank is known"""
    return bool((room.joined | 1 << event.rank) == (1 << event.need) - 1)


@guard
def fits(room: Any, event: Any) -> bool:
    """the chunk is within the announced length, and it is the last one exactly when it ends there"""
    if room.last_sent or room.announced < 0:
        return False
    end = room.sent_pages + event.count
    return bool(end == room.announced if event.last else end <= room.announced)


@guard
def finishes(room: Any, event: Any) -> bool:
    """no other write is unfinished, and the last chunk has been given"""
    return bool(room.in_flight == 1 and room.last_sent)


# --------------------------------------------------------------------------------------------------- both roles: guards


@guard
def current(room: Any, event: Any) -> bool:
    """the message names this life of the room, and comes from the very peer that takes part in it"""
    if room.role == Role.SENDER:
        link = room.links.get(event.rank)
        return link is not None and link.epoch == event.epoch and link.peer == event.peer
    rank = event.rank
    return bool(
        event.epoch == room.epoch and 0 <= rank < len(room.writers) and room.writers[rank] == event.peer
    )


@guard
def all_done(room: Any, event: Any) -> bool:
    """with this writer, every writer has landed everything"""
    return bool((room.done | 1 << event.rank) == (1 << len(room.writers)) - 1)


# ------------------------------------------------------------------------------------------------------ custody: guards


@guard
def outstanding(room: Any, event: Any) -> bool:
    """a write to the pages, or a read from them, may still be going on"""
    return bool(room.in_flight or room.loud or room.exposed & ~room.settled)


@guard
def owes_word(room: Any, event: Any) -> bool:
    """it is a failed sender, whose receivers wait to hear that nothing of it can land any more"""
    return room.role == Role.SENDER and room.failure is not None


# --------------------------------------------------------------------------------------------------------- peer: guards


@guard
def patient(peer: Any, event: Any) -> bool:
    """fewer greetings have gone unanswered than are allowed"""
    return bool(peer.greetings < peer.max_greetings)


# ------------------------------------------------------------------------------------------------------------- failures


def _fail(room: Any, failure: Failure) -> None:
    if room.failure is None:  # first cause kept (invariant 12)
        room.failure = msgspec.structs.replace(
            failure, rank=failure.rank or room.home, state=failure.state or KVPoll(room.state).name
        )


@update
def fail(room: Any, event: Any) -> None:
    """keep the event's failure, if it is the first"""
    _fail(room, event.failure)


@update
def fail_deadline(room: Any, event: Any) -> None:
    """keep as failure that the state lasted too long"""
    waited_for = {
        (Role.SENDER, KVPoll.Bootstrapping): "the destination of every decode rank",
        (Role.SENDER, KVPoll.WaitingForInput): "the scheduler's first chunk",
        (Role.SENDER, KVPoll.Transferring): "the next chunk, or the end of a write",
        (Role.RECEIVER, KVPoll.Bootstrapping): "init() and an answer of the bootstrap registry",
        (Role.RECEIVER, KVPoll.WaitingForInput): "the scheduler's send_metadata()",
        (Role.RECEIVER, KVPoll.Transferring): "a sign of work from a writer",
    }[Role(room.role), KVPoll(room.state)]
    _fail(room, Failure(Cause.DEADLINE, f"waited {room.patience:g} s for {waited_for}", "", ""))


@update
def fail_lengths(room: Any, event: Any) -> None:
    """keep as failure that the two sides count different numbers of pages"""
    if isinstance(event, Destination):
        ours, theirs = room.announced, event.num_pages
    else:
        ours = event.num_pages
        theirs = next(d.num_pages for d in room.links.values() if isinstance(d, Destination) and d.num_pages != ours)
    _fail(room, Failure(Cause.PROTOCOL_ERROR, f"prefill announced {ours} pages, decode granted {theirs}", "", ""))


@update
def fail_overrun(room: Any, event: Any) -> None:
    """keep as failure that the chunks do not add up to the announced length"""
    end = room.sent_pages + event.count
    detail = f"a {'last ' if event.last else ''}chunk ends at page {end} of {max(room.announced, 0)} announced"
    _fail(room, Failure(Cause.PROTOCOL_ERROR, detail, "", ""))


@update
def fail_drained(room: Any, event: Any) -> None:
    """keep as failure that a writer ended before it had written everything"""
    detail = f"writer {event.rank} says that its side of the room is over"
    _fail(room, Failure(Cause.REFUSED, detail, "", ""))


# ------------------------------------------------------------------------------------------------------ sender: updates


@update
def set_length(room: Any, event: Any) -> None:
    """remember the announced number of pages and the aux slot"""
    room.announced = event.num_pages
    room.aux_index = event.aux_index


@update
def note_join(room: Any, event: Any) -> None:
    """remember who takes part"""
    if not room.links:
        room.links = {}  # an idle room shares one empty dict
    room.links.setdefault(event.rank, event)
    room.need = (1 << event.need) - 1


@update
def add_destination(room: Any, event: Any) -> None:
    """remember where to write for this rank"""
    if not room.links:
        room.links = {}
    room.links[event.rank] = event
    room.need = (1 << event.need) - 1
    room.joined |= 1 << event.rank


@update
def count_chunk(room: Any, event: Any) -> None:
    """count the chunk's pages, and one write in flight for each destination"""
    event.first = room.sent_pages
    room.sent_pages += event.count
    room.last_sent = event.last
    room.in_flight += len(room.links)


@update
def count_end(room: Any, event: Any) -> None:
    """one write less is in flight"""
    room.in_flight -= 1


@update
def count_loud(room: Any, event: Any) -> None:
    """one write less is in flight, but this peer must be fenced before the pages are safe"""
    room.in_flight -= 1
    if event.peer not in room.loud:
        room.loud += (event.peer,)


@update
def quieten(room: Any, event: Any) -> None:
    """this peer is fenced: no write to it and none from it can be running"""
    if room.loud:
        room.loud = tuple(peer for peer in room.loud if peer != event.peer)
    for rank, peer in enumerate(room.writers):
        if peer == event.peer:
            room.settled |= 1 << rank


# ---------------------------------------------------------------------------------------------------- receiver: updates


@update
def set_rank(room: Any, event: Any) -> None:
    """remember the prefill's data-parallel rank"""
    room.dp_rank = event.dp_rank


@update
def set_writers(room: Any, event: Any) -> None:
    """remember the peers that will write"""
    room.writers = event.writers


@update
def expose(room: Any, event: Any) -> None:
    """every writer may write to the granted pages from now on"""
    room.grant = event
    room.exposed = (1 << len(room.writers)) - 1


@update
def note_done(room: Any, event: Any) -> None:
    """this writer has landed everything"""
    room.done |= 1 << event.rank
    room.settled |= 1 << event.rank


@update
def note_settled(room: Any, event: Any) -> None:
    """nothing of this writer can land any more"""
    room.settled |= 1 << event.rank


# -------------------------------------------------------------------------------------------------------- both: updates


@update
def queue(room: Any, event: Any) -> None:
    """keep the call until its state is reached"""
    if room.queue is None:
        room.queue = []
    room.queue.append(event)


@update
def drop_queue(room: Any, event: Any) -> None:
    """forget the calls that wait"""
    room.queue = None


@update
def note_teller(room: Any, event: Any) -> None:
    """remember which peer told us"""
    room.told_by = event.peer


# -------------------------------------------------------------------------------------------------------- peer: updates


@update
def count_greeting(peer: Any, event: Any) -> None:
    """another greeting goes unanswered"""
    peer.greetings += 1


@update
def note_unanswered(peer: Any, event: Any) -> None:
    """keep as reason that no greeting was answered"""
    peer.reason = f"no answer to {peer.greetings + 1} greetings, {peer.patience:g} s apart"


@update
def note_silence(peer: Any, event: Any) -> None:
    """keep as reason that nothing was heard for too long"""
    peer.reason = f"not a word in the last {peer.patience:g} s"


@update
def note_reason(peer: Any, event: Any) -> None:
    """keep the reason given"""
    peer.reason = event.reason
