"""The machines, pure: no I/O, no threads, no clock, no logging.

Read in this order: `states`, `events`, `actions` (the vocabulary), `../specs/*.toml` (the machines), `spec` (what makes
a spec sound), `rules` (what its guard and update names mean), `machine` (the same as a `transitions` machine), `table`
(the same as a dense table, and `step`, the only function that changes a record's state).
"""
