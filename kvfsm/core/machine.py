"""A spec as a `transitions` machine: for diagrams, for introspection, and as the source of the dense table.

Guards become conditions, updates `before` callbacks, actions `after` callbacks and the states' `on_enter` and `on_exit`;
all by name, so a model that has methods of those names can be driven by the machine itself (the tests do, to compare).
"""

from __future__ import annotations

from typing import Any

from transitions import Machine, State

from kvfsm.core.spec import Spec

IGNORED = "ignored"
"""The `after` callback of a row that is declared to change nothing."""


def build(spec: Spec, machine_class: type[Machine] = Machine, **options: Any) -> Machine:
    """The machine of `spec`, with no model attached unless `options` (those of `transitions.Machine`) give one."""
    states = [
        State(name, on_enter=list(state.enter), on_exit=list(state.exit), final=state.terminal)
        for name, state in spec.states.items()
    ]
    rows = [
        {
            "trigger": row.event,
            "source": source,
            "dest": row.to,  # None: transitions' internal transition, which runs no entry or exit
            "conditions": [guard for guard, want in row.guards if want],
            "unless": [guard for guard, want in row.guards if not want],
            "before": list(row.update),
            "after": [IGNORED] if row.ignored else list(row.do),
        }
        for row in spec.rows
        for source in row.sources
    ]
    options = {"model": None, "name": spec.name, **options}
    return machine_class(
        states=states, transitions=rows, initial=spec.initial, auto_transitions=False, send_event=True, **options
    )
