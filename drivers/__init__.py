"""Byte movers behind one interface (`kvfsm.drivers.base`), found through the entry-point group ``kvfsm.drivers``.

Anyone can ship a driver: a package that declares ::

    [project.entry-points."kvfsm.drivers"]
    mywire = "mypackage.driver:MyWireDriver"

is available as ``RoomManager(driver="mywire")`` as soon as it is installed.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from kvfsm.drivers.base import Capabilities, Completion, Descriptors, Driver, MemoryKind, Outcome, Region
from kvfsm.errors import DriverError, MissingExtra

GROUP = "kvfsm.drivers"

__all__ = [
    "Capabilities",
    "Completion",
    "Descriptors",
    "Driver",
    "MemoryKind",
    "Outcome",
    "Region",
    "available",
    "load",
]


def available() -> dict[str, EntryPoint]:
    """Installed drivers by name. Does not import them."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def load(name: str, **options: object) -> Driver:
    """Import and construct the driver called `name`.

    Raises `DriverError` if no installed package offers it, `MissingExtra` if its engine is not installed.
    """
    found = available()
    if name not in found:
        offered = ", ".join(sorted(found)) or "none (is kvfsm installed, or only on the path?)"
        raise DriverError(f"no driver is called {name!r}; installed drivers: {offered}")
    try:
        factory = found[name].load()
    except MissingExtra:
        raise
    except ImportError as err:
        raise DriverError(f"driver {name!r} ({found[name].value}) cannot be imported: {err}") from err
    driver = factory(**options)
    if not isinstance(driver, Driver):
        raise DriverError(f"{found[name].value} offers driver {name!r} but is not a kvfsm.drivers.Driver")
    return driver
