"""The machines as data: `sender.toml`, `receiver.toml`, `custody.toml`, `peer.toml`.

`kvfsm.core.spec` says what a file may contain and refuses an unsound one; `docs/machines/` shows each as a diagram and
a table, generated from these files.
"""
