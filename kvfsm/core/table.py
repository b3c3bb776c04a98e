"""The machines as dense tables, and `step`: the one function that changes a record's state.

`rows[state][kind]` is a short tuple of rows; the first whose guards agree applies (the spec's soundness makes it the only
one). Everything that can be worked out once is worked out when the table is compiled: a step without guards is two
lookups, a few attribute writes and one constant tuple of actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any

from transitions import Machine

from kvfsm.core.actions import Action
from kvfsm.core.events import Kind
from kvfsm.core.machine import IGNORED, build
from kvfsm.core.record import Peer, Room
from kvfsm.core.rules import GUARDS, UPDATES, Guard, Update
from kvfsm.core.spec import OVERDUE, RENEW, SETTLE, Spec, load
from kvfsm.core.states import STATES, KVPoll
from kvfsm.errors import SpecError

STAY = -1

Actions = tuple[Action, ...]
Row = tuple[
    tuple[tuple[Guard, bool], ...],
    tuple[Update, ...],
    int,  # the state it leads to, or STAY
    Actions,
    Kind | None,  # the event that the custody machine takes in the same step
    float | None,  # the deadline, in seconds from now; inf: none; None: left as it is
]
Rows = list[list[tuple[Row, ...]]]


@dataclass(frozen=True)
class Table:
    name: str
    initial: int
    initial_seconds: float
    rows: Rows
    custody: Rows | None = None
    """A room's second machine."""


def step(table: Table, record: Room | Peer, event: Any, now: float) -> Actions:
    """Take `event` at `now` (seconds): change the record, and return what is to be done, in order."""
    for guards, updates, to, actions, tail, seconds in table.rows[record.state][event.KIND]:
        for guard, want in guards:
            if guard(record, event) is not want:
                break
        else:
            for update in updates:
                update(record, event)
            if to >= 0:
                record.state = to
            if seconds is not None:
                record.patience = seconds
                record.deadline = now + seconds
            if tail is not None:
                return actions + _custody_step(table, record, event, tail, now)
            return actions
    raise AssertionError(f"no row of {table.name} for {event!r} in state {record.state}")  # soundness forbids it


def _custody_step(table: Table, record: Any, event: Any, kind: Kind, now: float) -> Actions:
    assert table.custody is not None
    for guards, updates, to, actions, _, seconds in table.custody[record.custody][kind]:
        if all(guard(record, event) is want for guard, want in guards):
            for update in updates:
                update(record, event)
            if to >= 0:
                record.custody = to
            if seconds is not None:
                record.patience = seconds
                record.deadline = now + seconds
            return actions
    raise AssertionError(f"no row of custody for {kind.name} in {record.custody}")


def begin(table: Table, record: Room | Peer, now: float) -> None:
    """Start a new record's first deadline."""
    record.state = table.initial
    record.patience = table.initial_seconds
    record.deadline = now + table.initial_seconds


# ------------------------------------------------------------------------------------------------------------- compiling


@lru_cache(maxsize=None)
def shipped(name: str) -> Table:
    """The table of one of kvfsm's own machines with the deadlines that its spec gives."""
    return compile_table(name)


def compile_table(name: str, deadlines: Mapping[str, float] | None = None) -> Table:
    """The table of the machine `name` with some of its `deadlines` (name -> seconds) set otherwise.

    Raises `SpecError` for a deadline that neither the machine nor its custody has.
    """
    chosen = dict(deadlines or {})
    spec = load(name)
    custody = load("custody") if name in ("sender", "receiver") else None
    known = {**spec.deadlines, **(custody.deadlines if custody else {})}
    for deadline, seconds in chosen.items():
        if deadline not in known:
            raise SpecError(f"{spec.file}: no deadline is called {deadline!r}; deadlines: {', '.join(sorted(known))}")
        if not seconds > 0:
            raise SpecError(f"{spec.file}: deadline {deadline!r} must be longer than 0 s, not {seconds!r}")
    return compile_spec(spec, custody, chosen)


def compile_spec(
    spec: Spec,
    custody: Spec | None = None,
    deadlines: Mapping[str, float] | None = None,
    guards: Mapping[str, Guard] = GUARDS,
    updates: Mapping[str, Update] = UPDATES,
) -> Table:
    """Compile any sound spec; other `guards` and `updates` than kvfsm's own let a test watch or steer them."""
    compiler = _Compiler(deadlines or {}, guards, updates)
    return Table(
        name=spec.name,
        initial=int(STATES[spec.name][spec.initial]),
        initial_seconds=compiler.seconds(spec, spec.initial),
        rows=compiler.rows(spec),
        custody=compiler.rows(custody) if custody else None,
    )


class _Compiler:
    def __init__(
        self, deadlines: Mapping[str, float], guards: Mapping[str, Guard], updates: Mapping[str, Update]
    ) -> None:
        self.deadlines, self.guards, self.updates = deadlines, guards, updates

    def seconds(self, spec: Spec, state: str) -> float:
        name = spec.states[state].deadline
        return self.deadlines.get(name, spec.deadlines[name].seconds) if name else inf

    def rows(self, spec: Spec) -> Rows:
        machine = build(spec)
        states = STATES[spec.name]
        table: Rows = [[() for _ in Kind] for _ in states]
        for event in spec.events:
            by_source = machine.events[event].transitions
            for state in states:
                found = tuple(self.row(spec, machine, transition) for transition in by_source[state.name])
                table[state][Kind[event.upper()]] = found
        return table

    def row(self, spec: Spec, machine: Machine, transition: Any) -> Row:
        """One row of the table from one of the machine's transitions. The order of actions is that of transitions."""
        before, after = list(transition.before), list(transition.after)
        names: list[str] = []
        actions: list[Action] = [Action.IGNORED] if after == [IGNORED] else []
        seconds: float | None = None
        to = STAY
        if transition.dest is not None:
            to = int(STATES[spec.name][transition.dest])
            names += machine.states[transition.source].on_exit
            seconds = self.seconds(spec, transition.dest)
            if spec.name in ("sender", "receiver") and to != KVPoll.Cleared:
                actions.append(Action.PUBLISH)
            names += machine.states[transition.dest].on_enter
        elif RENEW in before:
            seconds = self.seconds(spec, transition.source)
        if seconds is not None:
            actions.append(Action.ARM)
        names += [name for name in after if name != IGNORED]
        tails = [name for name in names if name in (SETTLE, OVERDUE)]
        assert len(set(tails)) <= 1, f"{spec.file}: a row runs custody twice"
        actions += [Action[name.upper()] for name in names if name not in (SETTLE, OVERDUE)]
        return (
            tuple((self.guards[c.func], c.target) for c in transition.conditions),
            tuple(self.updates[name] for name in before if name != RENEW),
            to,
            tuple(actions),
            {SETTLE: Kind.SETTLE, OVERDUE: Kind.DEADLINE}[tails[0]] if tails else None,
            seconds,
        )
