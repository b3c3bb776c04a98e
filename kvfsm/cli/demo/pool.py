"""The demo's paged KV pool: what a serving engine keeps per process, in host memory.

Layout NHD: one contiguous float32 array per layer for K and one for V, shape (pages, page tokens, heads, head dim), so
that one page of one buffer is one contiguous span of `item_len` bytes. A request owns a list of page numbers; token `t`
lies in page `pages[t // page_tokens]`, slot `t % page_tokens`.
"""

from __future__ import annotations

import zlib
from collections import deque

import numpy as np
import numpy.typing as npt

from kvfsm.errors import KvfsmError, PageIndexError, UsageError

Floats = npt.NDArray[np.float32]
Pages = npt.NDArray[np.int64]

AUX_SLOTS = 256
AUX_COLUMNS = 8
AUX_FIRST_TOKEN, AUX_NUM_TOKENS, AUX_CHECKSUM = 0, 1, 2
"""Columns of an aux row: the first generated token, the prompt's length in tokens, `PagedPool.checksum` of its KV."""


class OutOfPages(KvfsmError):
    """Fewer pages are free than were asked for; nothing was taken."""


class PagedPool:
    """K and V of every layer for `num_pages` pages of `page_tokens` tokens, and the aux rows, one per request slot."""

    def __init__(self, num_layers: int, num_heads: int, head_dim: int, page_tokens: int, num_pages: int) -> None:
        sizes = (num_layers, num_heads, head_dim, page_tokens, num_pages)
        if min(sizes) < 1:
            raise UsageError(f"a pool needs positive sizes; got layers, heads, dim, page tokens, pages = {sizes}")
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.page_tokens = page_tokens
        self.num_pages = num_pages
        shape = (num_pages, page_tokens, num_heads, head_dim)
        self.k: list[Floats] = [np.zeros(shape, np.float32) for _ in range(num_layers)]
        """Per layer: shape (num_pages, page_tokens, num_heads, head_dim)."""
        self.v: list[Floats] = [np.zeros(shape, np.float32) for _ in range(num_layers)]
        """Per layer: shape (num_pages, page_tokens, num_heads, head_dim)."""
        self.aux: npt.NDArray[np.int64] = np.zeros((AUX_SLOTS, AUX_COLUMNS), np.int64)
        """Shape (256, 8): one row per request slot, see `AUX_FIRST_TOKEN` and its neighbours."""
        self.item_len = page_tokens * num_heads * head_dim * 4
        """Bytes of one page in one buffer; the same for every K and V buffer."""

    def buffers(self) -> list[tuple[str, Floats]]:
        """Every KV buffer with its label, the K of all layers before the V of all layers. `aux` is not among them."""
        return [(f"k.{i}", a) for i, a in enumerate(self.k)] + [(f"v.{i}", a) for i, a in enumerate(self.v)]

    def pages_for(self, num_tokens: int) -> int:
        """Pages that `num_tokens` tokens occupy, the last one possibly in part."""
        return -(-num_tokens // self.page_tokens)

    def write(self, layer: int, pages: Pages, start_token: int, k: Floats, v: Floats) -> None:
        """Scatter `k` and `v`, shape (tokens, heads, dim), to the request's tokens from `start_token` on."""
        expected = (len(k), self.num_heads, self.head_dim)
        if k.shape != expected or v.shape != expected:
            raise UsageError(f"k and v must both have shape {expected}; got {k.shape} and {v.shape}")
        page, slot = self._locate(layer, pages, start_token, start_token + len(k))
        self.k[layer][page, slot] = k
        self.v[layer][page, slot] = v

    def gather(self, layer: int, pages: Pages, num_tokens: int) -> tuple[Floats, Floats]:
        """Copies of the first `num_tokens` tokens' K and V, each of shape (num_tokens, heads, dim), contiguous."""
        page, slot = self._locate(layer, pages, 0, num_tokens)
        return self.k[layer][page, slot], self.v[layer][page, slot]

    def checksum(self, pages: Pages, num_tokens: int) -> int:
        """CRC-32 of the K and V of the first `num_tokens` tokens in all layers.

        It covers the values in token order, so it does not depend on which pages hold them, nor on what lies in the
        unused rest of the last page.
        """
        crc = 0
        for layer in range(self.num_layers):
            for part in self.gather(layer, pages, num_tokens):
                crc = zlib.crc32(part.data, crc)
        return crc

    def _locate(self, layer: int, pages: Pages, start: int, stop: int) -> tuple[Pages, Pages]:
        """Page number and slot of every token in [start, stop), each of shape (stop - start,)."""
        if not 0 <= layer < self.num_layers:
            raise PageIndexError(f"layer {layer} is not one of the pool's {self.num_layers} layers")
        if not 0 <= start <= stop:
            raise UsageError(f"token range [{start}, {stop}) is not a range")
        if stop > len(pages) * self.page_tokens:
            raise PageIndexError(f"{stop} tokens do not fit into {len(pages)} pages of {self.page_tokens} tokens")
        token = np.arange(start, stop, dtype=np.int64)
        page = pages[token // self.page_tokens]
        # A negative number would silently count from the pool's end and write into another request's page.
        if page.size and (page.min() < 0 or page.max() >= self.num_pages):
            raise PageIndexError(f"pages {page.min()}..{page.max()} reach outside the pool's 0..{self.num_pages - 1}")
        return page, token % self.page_tokens


class PageAllocator:
    """Free list of page numbers. Not thread-safe: one owner.

    The order is shuffled by `seed`, so that a request's pages are scattered as they are in an engine that has served
    for hours, and two processes with different seeds hold the same request in different pages. The first `reserved`
    pages are never handed out (engines keep page 0 as the target of padding).
    """

    def __init__(self, num_pages: int, seed: int, reserved: int = 0) -> None:
        if not 0 <= reserved <= num_pages:
            raise UsageError(f"cannot reserve {reserved} of {num_pages} pages")
        order = np.random.default_rng(seed).permutation(np.arange(reserved, num_pages, dtype=np.int64))
        self._free: deque[int] = deque(order.tolist())
        self._used: set[int] = set()

    @property
    def free_count(self) -> int:
        return len(self._free)

    def alloc(self, n: int) -> Pages:
        """Take `n` pages: shape (n,), int64, in no particular order."""
        if n < 0:
            raise UsageError(f"cannot allocate {n} pages")
        if n > len(self._free):
            raise OutOfPages(f"{n} pages were asked for and {len(self._free)} are free")
        taken = [self._free.popleft() for _ in range(n)]
        self._used.update(taken)
        return np.array(taken, dtype=np.int64)

    def free(self, pages: Pages) -> None:
        """Give pages back, all or none: a page that is not out (a double free) leaves everything as it was."""
        numbers: list[int] = pages.tolist()
        if len(set(numbers)) != len(numbers):
            raise UsageError(f"a page occurs twice among the pages to free: {sorted(numbers)}")
        strangers = sorted(set(numbers) - self._used)
        if strangers:
            raise UsageError(f"pages {strangers} are not allocated (freed twice, or never handed out)")
        self._used.difference_update(numbers)
        self._free.extend(numbers)
