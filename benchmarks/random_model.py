"""A random model of Qwen2.5-0.5B's shape in bf16, for the benchmarks in Python (needs numpy)."""
import json
import struct

import numpy

WIDTH, LAYERS, HEADS, KV_HEADS, INNER, VOCABULARY = 896, 24, 14, 2, 4864, 151936
HEAD = WIDTH // HEADS
CONFIG = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": VOCABULARY, "hidden_size": WIDTH,
          "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
          "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 1e4, "max_position_embeddings": 2048,
          "tie_word_embeddings": True}


def shapes():
    """(name in safetensors, name in GGUF, shape) of every tensor."""
    yield "model.embed_tokens.weight", "token_embd.weight", (VOCABULARY, WIDTH)
    yield "model.norm.weight", "output_norm.weight", (WIDTH,)
    for i in range(LAYERS):
        ours, theirs = f"model.layers.{i}.", f"blk.{i}."
        for name, other, rows in (("q", "q", WIDTH), ("k", "k", KV_HEADS * HEAD), ("v", "v", KV_HEADS * HEAD)):
            yield f"{ours}self_attn.{name}_proj.weight", f"{theirs}attn_{other}.weight", (rows, WIDTH)
            yield f"{ours}self_attn.{name}_proj.bias", f"{theirs}attn_{other}.bias", (rows,)
        yield f"{ours}self_attn.o_proj.weight", f"{theirs}attn_output.weight", (WIDTH, WIDTH)
        yield f"{ours}mlp.gate_proj.weight", f"{theirs}ffn_gate.weight", (INNER, WIDTH)
        yield f"{ours}mlp.up_proj.weight", f"{theirs}ffn_up.weight", (INNER, WIDTH)
        yield f"{ours}mlp.down_proj.weight", f"{theirs}ffn_down.weight", (WIDTH, INNER)
        yield f"{ours}input_layernorm.weight", f"{theirs}attn_norm.weight", (WIDTH,)
        yield f"{ours}post_attention_layernorm.weight", f"{theirs}ffn_norm.weight", (WIDTH,)


def values(name, shape, generator):
    """The upper halves of random floats: bf16, rounded towards zero."""
    if "norm" in name:
        drawn = numpy.ones(shape, numpy.float32)
    else:
        drawn = generator.standard_normal(shape, numpy.float32) * numpy.float32(0.02)
    return (drawn.view(numpy.uint32) >> 16).astype(numpy.uint16)


def write(folder, on_tensor=lambda other, half: None):
    """Makes the folder with config.json and model.safetensors. `on_tensor` gets each tensor's name in GGUF and its values."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    header, offset, generator = {}, 0, numpy.random.default_rng(1)
    for name, _, shape in shapes():
        size = 2 * int(numpy.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name, other, shape in shapes():
            half = values(name, shape, generator)
            half.tofile(out)
            on_tensor(other, half)
