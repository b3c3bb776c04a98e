"""Read a machine's TOML file, and refuse it unless the machine is sound.

Sound means: every name exists; every state can be reached; every state that is not terminal has a deadline (or says what
bounds it instead); and for every state and event, whatever the guards answer, exactly one row applies. "Nothing happens"
is a row too, written as `[[ignore]]`, with its reason. A refusal names the file, the row and the reason.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec

from kvfsm.core.actions import COMPILER_ONLY, Action
from kvfsm.core.events import Kind
from kvfsm.core.rules import GUARDS, UPDATES
from kvfsm.core.states import STATES
from kvfsm.errors import SpecError

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - the same library under its name before the standard library took it in
    import tomli as tomllib

MACHINES = ("sender", "receiver", "custody", "peer")

RENEW = "renew"
"""Among a row's updates: start the state's deadline anew."""
SETTLE, OVERDUE = "settle", "overdue"
"""Among a room's actions: run the custody machine, with its event `settle` or `deadline`, within the same step."""


class _Raw(msgspec.Struct, forbid_unknown_fields=True):
    pass


class _Head(_Raw):
    name: str
    initial: str
    meaning: str


class DeadlineSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seconds: float
    meaning: str


class StateSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    meaning: str
    deadline: str = ""
    """Name of the deadline that bounds a stay in the state."""
    bounded_by: str = ""
    """A sentence, for a state that something else bounds."""
    terminal: bool = False
    enter: tuple[str, ...] = ()
    exit: tuple[str, ...] = ()


class _On(_Raw, rename={"source": "from", "guards": "if"}):
    event: str | list[str]
    source: str | list[str]
    to: str
    guards: tuple[str, ...] = ()
    update: tuple[str, ...] = ()
    do: tuple[str, ...] = ()
    why: str = ""


class _Ignore(_Raw, rename={"source": "in", "guards": "if"}):
    event: str | list[str]
    source: str | list[str]
    why: str
    guards: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One transition for one event out of one or more states."""

    event: str
    sources: tuple[str, ...]
    guards: tuple[tuple[str, bool], ...]
    """(name, the answer it must give)."""
    to: str | None
    """None: the state stays, and neither exit nor entry hooks run."""
    update: tuple[str, ...]
    do: tuple[str, ...]
    why: str
    ignored: bool
    where: str
    """File and place of the row, for messages."""


@dataclass(frozen=True)
class Spec:
    """A sound machine."""

    file: str
    name: str
    initial: str
    meaning: str
    deadlines: dict[str, DeadlineSpec]
    states: dict[str, StateSpec]
    events: dict[str, str]
    rows: tuple[Row, ...]

    def rows_for(self, state: str, event: str) -> Iterator[Row]:
        return (row for row in self.rows if row.event == event and state in row.sources)


@lru_cache(maxsize=None)
def load(name: str) -> Spec:
    """The sound machine called `name` (one of `MACHINES`) that kvfsm ships. Raises `SpecError`."""
    return parse(files("kvfsm.specs").joinpath(f"{name}.toml").read_text("utf-8"), f"specs/{name}.toml")


def parse(text: str, file: str) -> Spec:
    """Check the TOML `text`; `file` is its name in messages. Raises `SpecError`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        raise SpecError(f"{file}: not TOML: {err}") from err
    unknown = set(data) - {"machine", "deadlines", "states", "events", "on", "ignore"}
    if unknown:
        raise SpecError(f"{file}: unknown section [{min(unknown)}]")
    head = _convert(data.get("machine", {}), _Head, f"{file}: [machine]")
    if head.name not in STATES:
        raise SpecError(f"{file}: [machine]: {head.name!r} is not a machine; machines: {', '.join(STATES)}")
    draft = Spec(
        file=file,
        name=head.name,
        initial=head.initial,
        meaning=head.meaning,
        deadlines=_table(data, "deadlines", DeadlineSpec, file),
        states=_table(data, "states", StateSpec, file),
        events=_convert(data.get("events", {}), dict[str, str], f"{file}: [events]"),
        rows=(),
    )
    spec = Spec(**{**draft.__dict__, "rows": tuple(_rows(data, draft))})
    for check in (_check_states, _check_rows, _check_reachable, _check_cases):
        check(spec)
    return spec


# ------------------------------------------------------------------------------------------------------------- reading


def _convert(value: object, kind: Any, where: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as err:
        raise SpecError(f"{where}: {err}") from err


def _table(data: dict[str, Any], section: str, kind: Any, file: str) -> dict[str, Any]:
    table = _convert(data.get(section, {}), dict[str, Any], f"{file}: [{section}]")
    return {name: _convert(value, kind, f"{file}: [{section}.{name}]") for name, value in table.items()}


def _rows(data: dict[str, Any], draft: Spec) -> Iterator[Row]:
    for section, kind in (("on", _On), ("ignore", _Ignore)):
        for number, value in enumerate(_convert(data.get(section, []), list[Any], f"{draft.file}: [[{section}]]"), 1):
            where = f"{draft.file}: [[{section}]] number {number}"
            raw = _convert(value, kind, where)
            for event in [raw.event] if isinstance(raw.event, str) else raw.event:
                place = f"{where} ({event})"
                yield Row(
                    event=event,
                    sources=_sources(raw.source, draft, place),
                    guards=tuple((guard.lstrip("!"), not guard.startswith("!")) for guard in raw.guards),
                    to=None if section == "ignore" or raw.to == "=" else raw.to,
                    update=() if section == "ignore" else raw.update,
                    do=() if section == "ignore" else raw.do,
                    why=raw.why,
                    ignored=section == "ignore",
                    where=place,
                )


def _sources(names: str | list[str], draft: Spec, where: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for name in [names] if isinstance(names, str) else names:
        if name in ("live", "terminal"):
            found.update(dict.fromkeys(s for s, state in draft.states.items() if state.terminal == (name == "terminal")))
        elif name == "*":
            found.update(dict.fromkeys(draft.states))
        elif name in draft.states:
            found[name] = None
        else:
            raise SpecError(f"{where}: unknown state {name!r}")
    return tuple(found)


# ------------------------------------------------------------------------------------------------------------ soundness


def _check_states(spec: Spec) -> None:
    known = {member.name for member in STATES[spec.name]}
    for name in spec.states:
        if name not in known:
            raise SpecError(f"{spec.file}: [states.{name}]: unknown state; known: {', '.join(sorted(known))}")
    if known - set(spec.states):
        raise SpecError(f"{spec.file}: [states]: state {min(known - set(spec.states))!r} is missing")
    if spec.initial not in spec.states:
        raise SpecError(f"{spec.file}: [machine]: unknown initial state {spec.initial!r}")
    for name, state in spec.states.items():
        where = f"{spec.file}: [states.{name}]"
        if state.deadline and state.deadline not in spec.deadlines:
            raise SpecError(f"{where}: unknown deadline {state.deadline!r}")
        if not state.terminal and not state.deadline and not state.bounded_by:
            raise SpecError(f"{where}: a state that is not terminal needs a deadline, or says what bounds it (bounded_by)")
        if state.terminal and (state.deadline or state.bounded_by):
            raise SpecError(f"{where}: a terminal state has no deadline")
        _check_actions(spec, (*state.enter, *state.exit), where)
    for event in spec.events:
        if event.upper() not in Kind.__members__:
            raise SpecError(f"{spec.file}: [events]: unknown event {event!r}")


def _check_actions(spec: Spec, names: Iterable[str], where: str) -> None:
    for name in names:
        if name in (SETTLE, OVERDUE):
            if spec.name in ("sender", "receiver"):
                continue
            raise SpecError(f"{where}: {name!r} runs the custody machine, which {spec.name} does not have")
        if name.upper() not in Action.__members__ or Action[name.upper()] in COMPILER_ONLY:
            raise SpecError(f"{where}: unknown action {name!r}")


def _check_rows(spec: Spec) -> None:
    for row in spec.rows:
        if row.event not in spec.events:
            raise SpecError(f"{row.where}: unknown event {row.event!r}")
        if row.to is not None and row.to not in spec.states:
            raise SpecError(f"{row.where}: unknown state {row.to!r}")
        for guard, _ in row.guards:
            if guard not in GUARDS:
                raise SpecError(f"{row.where}: unknown guard {guard!r}")
        if len({guard for guard, _ in row.guards}) < len(row.guards):
            raise SpecError(f"{row.where}: a guard stands there twice")
        for update in row.update:
            if update not in UPDATES and update != RENEW:
                raise SpecError(f"{row.where}: unknown update {update!r}")
        _check_actions(spec, row.do, row.where)
        if row.to is None:
            if RENEW in row.update and not all(spec.states[state].deadline for state in row.sources):
                raise SpecError(f"{row.where}: renews the deadline of a state that has none")
        elif RENEW in row.update:
            raise SpecError(f"{row.where}: a row that changes the state starts its deadline anyway")
        elif row.to in row.sources:
            raise SpecError(f'{row.where}: a row that keeps the state is written with to = "="')


def _check_reachable(spec: Spec) -> None:
    reached, frontier = {spec.initial}, [spec.initial]
    while frontier:
        state = frontier.pop()
        for row in spec.rows:
            if state in row.sources and row.to is not None and row.to not in reached:
                reached.add(row.to)
                frontier.append(row.to)
    for state in spec.states:
        if state not in reached:
            raise SpecError(f"{spec.file}: [states.{state}]: no row leads there from {spec.initial}")


def _check_cases(spec: Spec) -> None:
    for state, event in itertools.product(spec.states, spec.events):
        rows = list(spec.rows_for(state, event))
        if not rows:
            raise SpecError(f"{spec.file}: {event!r} is not handled in {state}, nor declared ignored there")
        atoms = sorted({guard for row in rows for guard, _ in row.guards})
        for answers in itertools.product((True, False), repeat=len(atoms)):
            case = dict(zip(atoms, answers, strict=True))
            matching = [row for row in rows if all(case[guard] is want for guard, want in row.guards)]
            told = ", ".join(guard if answer else f"not {guard}" for guard, answer in case.items()) or "always"
            if not matching:
                raise SpecError(f"{spec.file}: {event!r} in {state}: no row for the case: {told}")
            if len(matching) > 1:
                raise SpecError(
                    f"{matching[1].where}: second row for {event!r} in {state} ({told}); the first: {matching[0].where}"
                )
