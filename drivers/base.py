"""The one interface between kvfsm and whatever moves the bytes.

A driver knows **regions, peers, descriptors and tickets**. It never hears of rooms, ranks, heads, pages, time-outs or
clean-up: that arithmetic is in `kvfsm.plan`, those decisions are in the machines of `kvfsm.specs`.

Threading contract: every method is called from the manager's one owner thread and must not block on a peer. A driver
may run threads of its own; they hand results over through `progress()` and call `wake()` (given to `open`, safe from
any thread) so that a sleeping owner looks.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable, Sequence
from typing import ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

Descriptors = npt.NDArray[np.uint64]
"""Shape (N, 3): source address, destination address, length in bytes. N may be 0."""


class MemoryKind(str, enum.Enum):
    DRAM = "dram"
    VRAM = "vram"


class Region(msgspec.Struct, frozen=True):
    """A span of this process's memory that peers may write to and chunks may be read from.

    `address` and `length` in bytes; `device` is the CUDA ordinal for VRAM, 0 for DRAM.
    """

    address: int
    length: int
    kind: MemoryKind = MemoryKind.DRAM
    device: int = 0
    label: str = ""


class Outcome(enum.IntEnum):
    """What is known about a ticket's bytes. Only DONE, QUIET and FENCED let custody advance (invariant 3)."""

    DONE = 0
    """Every byte has landed at the destination; nothing of the ticket will be read or written any more."""
    QUIET = 1
    """It failed, and nothing of it can land, or be read from the source, any more."""
    LOUD = 2
    """It failed, but bytes may still land, or be read. A FENCED for its peer settles it."""
    FENCED = 3
    """Answer to `disconnect(peer)`: no earlier ticket to that peer, and no earlier write from it, can land any more.

    `Completion.peer` names the peer; `Completion.ticket` is 0.
    """


class Completion(msgspec.Struct, frozen=True, gc=False):
    outcome: Outcome
    ticket: int = 0
    peer: int = 0
    detail: str = ""
    """For a failure: one sentence that an operator can act on, with the engine's or the kernel's own error name."""


class Capabilities(msgspec.Struct, frozen=True):
    """What a driver can do. Checked against the README's matrix by a test."""

    one_sided: bool
    """The destination process takes no part in a write."""
    notifies: bool
    """The driver itself delivers `tag` to the destination; otherwise the manager tells it over the control plane."""
    max_batch: int
    """Most descriptors in one `send_chunk`; 0 means no limit (the driver splits by itself)."""
    memory_kinds: tuple[MemoryKind, ...]
    needs_progress_thread: bool
    """`progress()` must be called for bytes to move at all (as opposed to: only to learn that they did)."""


class Driver(abc.ABC):
    """Base class of all drivers. Life: `open` -> `register` -> (`connect`, `send_chunk`, ...)* -> `close`.

    `peer` is a small positive int chosen by the manager; one number is one incarnation of one remote process and is
    never used again for another. `ticket` is a positive int chosen by the driver, unique for the driver's life. Each
    ticket gets exactly one completion of DONE, QUIET or LOUD.
    """

    name: ClassVar[str]

    @property
    @abc.abstractmethod
    def capabilities(self) -> Capabilities: ...

    @abc.abstractmethod
    def open(self, wake: Callable[[], None]) -> None:
        """Acquire the engine. Raises `DriverError` with what is missing and how to get it."""

    @abc.abstractmethod
    def register(self, regions: Sequence[Region]) -> None:
        """Make `regions` readable for sends and writable for peers. May be called again with more regions.

        Raises `DriverError` for a zero-length, overlapping or unmapped region; nothing is registered then.
        """

    @abc.abstractmethod
    def metadata(self) -> bytes:
        """What a peer's `connect` needs to reach this process (at most 64 KiB). Contains no secret."""

    @abc.abstractmethod
    def connect(self, peer: int, metadata: bytes) -> None:
        """Learn of a peer. Never waits for it: a peer that cannot be reached shows up as failed tickets.

        Raises `DriverError` for metadata that this driver cannot read, or a peer number already connected.
        """

    @abc.abstractmethod
    def disconnect(self, peer: int) -> None:
        """Stop all traffic with the peer, in both directions, and prove it: a FENCED completion follows.

        FENCED comes as soon as it is true and not before; a mere time-out is no proof. Unfinished tickets to the peer
        are completed first. Idempotent; an unknown peer is FENCED at once. The peer number cannot be used afterwards.
        """

    @abc.abstractmethod
    def send_chunk(self, peer: int, descriptors: Descriptors, tag: int) -> int:
        """Start writing all of `descriptors` to the peer's memory and return the ticket.

        `tag` is an opaque u64 for notifications and logs. Raises `DriverError` before any byte moves when the peer is
        unknown or an address range is outside the registered regions of either side; later trouble is a completion.
        Zero descriptors, and descriptors of zero length, are legal and complete. A driver never retries a write by
        itself once part of it may have landed.
        """

    @abc.abstractmethod
    def scatter(self, descriptors: Descriptors, tag: int) -> int:
        """Start copying within this process's own registered memory (staging ring -> pages); returns the ticket."""

    @abc.abstractmethod
    def progress(self) -> list[Completion]:
        """Everything that completed since the last call, oldest first. Never waits."""

    @abc.abstractmethod
    def cancel(self, ticket: int) -> None:
        """Ask for an early end. The ticket's one completion still follows: DONE if it was too late, else QUIET or LOUD.

        Idempotent; a finished or unknown ticket is ignored.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Release everything, threads and sockets too, within a few seconds. Idempotent. No completion follows."""
