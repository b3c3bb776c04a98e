"""Every error that kvfsm raises on purpose.

One sentence each, with the values that explain it. All derive from `KvfsmError`, so an embedder can catch the family;
the argument errors derive from `ValueError` as well, because that is what a caller who never read this file expects.
"""

from __future__ import annotations


class KvfsmError(Exception):
    """Base of every error that kvfsm raises on purpose."""


class SpecError(KvfsmError):
    """A machine's TOML file is not a sound machine: names the file, the row and the reason."""


class UsageError(KvfsmError, ValueError):
    """A call that the room's own history forbids: a double `init`, a send past the announced length."""


class PageIndexError(UsageError):
    """A page, aux or state index that the registered pool does not have."""


class RoomInUse(KvfsmError):
    """The room id belongs to a room that has not been cleared; that room is not disturbed (invariant 9)."""


class UnknownRoom(KvfsmError, KeyError):
    """No open room has this id."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # KeyError would show the repr of the sentence


class TooManyRooms(KvfsmError):
    """`Config.max_rooms` rooms are open; nothing was opened."""


class ManagerError(KvfsmError):
    """The manager cannot do this now: not started, started twice, closed, or used after a fork."""


class AddressInUse(ManagerError):
    """The control endpoint or registry port is taken by another process."""


class RegistryError(KvfsmError):
    """The bootstrap registry refused, or could not be reached."""


class WireError(KvfsmError):
    """Bytes from the network are not a frame of this protocol version, or exceed its bounds."""


class LayoutMismatch(KvfsmError):
    """The two sides' pools cannot be mapped onto one another; the message carries both sides' values."""


class DriverError(KvfsmError):
    """A transport driver could not do what was asked, before any byte moved."""


class MissingExtra(KvfsmError, ImportError):
    """An optional extra is not installed; the message carries the pip command."""
