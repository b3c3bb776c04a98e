"""The demo's real model: SmolLM2-135M-Instruct on the CPU, greedy, in float32, with its KV in a `PagedPool`.

Chunked prefill, the decode from a pool and the single-process reference call the model with the same inputs in the same
order. With the same number of threads their numbers agree to the last bit, so the tokens must be equal: a demo that
prints "identical" compares, it does not tolerate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kvfsm.cli.demo import weights
from kvfsm.cli.demo.pool import PagedPool, Pages
from kvfsm.errors import UsageError


@dataclass(frozen=True)
class Prefilled:
    """Progress of a prefill: the KV of the first `tokens_done` tokens is in the pool.

    `first_token` is the first generated token, set on the last of a prompt's chunks and on no other.
    """

    tokens_done: int
    first_token: int | None = None


class Model(Protocol):
    """What the demo asks of a model; `SmolLM` and `synthetic.Synthetic` both are one."""

    @property
    def num_layers(self) -> int: ...
    @property
    def num_kv_heads(self) -> int: ...
    @property
    def head_dim(self) -> int: ...
    @property
    def eos_ids(self) -> frozenset[int]: ...

    def encode(self, prompt: str) -> list[int]: ...
    def decode(self, tokens: Sequence[int]) -> str: ...
    def prefill(
        self, tokens: Sequence[int], pool: PagedPool, pages: Pages, chunk_tokens: int
    ) -> Iterator[Prefilled]: ...
    def generate(
        self, pool: PagedPool, pages: Pages, num_tokens: int, first_token: int, max_new_tokens: int
    ) -> Iterator[int]: ...
    def reference(self, tokens: Sequence[int], chunk_tokens: int, max_new_tokens: int) -> list[int]: ...


def chunk_bounds(num_tokens: int, chunk_tokens: int) -> list[tuple[int, int]]:
    """[start, stop) of every chunk of a prompt, in tokens; only the last may be shorter than `chunk_tokens`."""
    if num_tokens < 1:
        raise UsageError("a prompt needs at least one token")
    if chunk_tokens < 1:
        raise UsageError(f"a chunk needs at least one token; chunk_tokens is {chunk_tokens}")
    return [(start, min(start + chunk_tokens, num_tokens)) for start in range(0, num_tokens, chunk_tokens)]


class SmolLM:
    """Construct with `SmolLM.load()`. One request at a time; not thread-safe."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        # A turn ends with the chat format's token; a plain end of text can only mean the same.
        ends = (tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|endoftext|>"))
        self._eos_ids = frozenset(int(i) for i in ends if i is not None)

    @classmethod
    def load(cls, threads: int | None = None) -> SmolLM:
        """Read the installed weights; offline. `threads`: CPU threads of the model, torch's own choice if None.

        Processes whose tokens are to be compared must use the same number: it decides how sums are split.
        """
        path = weights.find_gguf()
        try:
            import torch
        except ImportError as error:
            raise weights.missing("the package torch") from error
        if threads is not None:
            torch.set_num_threads(threads)
        return cls(*weights.load(path))

    @property
    def num_layers(self) -> int:
        return int(self._model.config.num_hidden_layers)

    @property
    def num_kv_heads(self) -> int:
        return int(self._model.config.num_key_value_heads)

    @property
    def head_dim(self) -> int:
        return int(self._model.config.head_dim)

    @property
    def eos_ids(self) -> frozenset[int]:
        return self._eos_ids

    def encode(self, prompt: str) -> list[int]:
        """Tokens of one user turn in the model's chat format, ready for the assistant's answer."""
        turn = [{"role": "user", "content": prompt}]
        text = self._tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
        return [int(i) for i in self._tokenizer(text, add_special_tokens=False)["input_ids"]]

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of `tokens`, without the chat format's own tokens."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True))

    def prefill(
        self, tokens: Sequence[int], pool: PagedPool, pages: Pages, chunk_tokens: int
    ) -> Iterator[Prefilled]:
        """Run the prompt chunk by chunk, writing each chunk's KV into `pages` of `pool` before it is reported."""
        cache = self._new_cache()
        bounds = chunk_bounds(len(tokens), chunk_tokens)
        for start, stop in bounds:
            token = self._forward(tokens[start:stop], cache)
            for layer in range(self.num_layers):
                keys, values = cache.layers[layer].keys, cache.layers[layer].values  # (1, heads, tokens, dim)
                k, v = (part[0, :, start:stop].transpose(0, 1).numpy() for part in (keys, values))
                pool.write(layer, pages, start, k, v)
            yield Prefilled(stop, token if stop == len(tokens) else None)

    def generate(
        self, pool: PagedPool, pages: Pages, num_tokens: int, first_token: int, max_new_tokens: int
    ) -> Iterator[int]:
        """Yield `first_token`, then continue greedily from the KV of `num_tokens` tokens that lies in the pool.

        At most `max_new_tokens` in all; an end token is yielded and is the last. The pool is read once, before the
        first token is yielded: the pages may be reused after that.
        """
        import torch

        cache = self._new_cache()
        for layer in range(self.num_layers):
            k, v = (torch.from_numpy(np.ascontiguousarray(a.swapaxes(0, 1)))[None] for a in pool.gather(layer, pages, num_tokens))
            cache.update(k, v, layer)
        yield from self._continue(cache, first_token, max_new_tokens)

    def reference(self, tokens: Sequence[int], chunk_tokens: int, max_new_tokens: int) -> list[int]:
        """What one process answers, with neither a pool nor a transfer: the same chunks through a cache of its own."""
        cache = self._new_cache()
        token = -1
        for start, stop in chunk_bounds(len(tokens), chunk_tokens):
            token = self._forward(tokens[start:stop], cache)
        return list(self._continue(cache, token, max_new_tokens))

    def _continue(self, cache: Any, token: int, max_new_tokens: int) -> Iterator[int]:
        for produced in range(1, max_new_tokens + 1):
            yield token
            if token in self._eos_ids or produced == max_new_tokens:
                return
            token = self._forward([token], cache)

    def _forward(self, tokens: Sequence[int], cache: Any) -> int:
        """Extend `cache` by `tokens` and return the most likely next token."""
        import torch

        # Entered per call, not around a generator's loop: the mode is the thread's, and a generator that is waiting
        # at a yield would leave it switched on for its caller.
        with torch.inference_mode():
            output = self._model(
                input_ids=torch.tensor([list(tokens)]), past_key_values=cache, use_cache=True, logits_to_keep=1
            )
            return int(output.logits[0, -1].argmax())

    def _new_cache(self) -> Any:
        from transformers import DynamicCache

        return DynamicCache()
