"""Small models of the families that MindSpeed-LLM's scripts train: config.json, made for a command.

A family is a folder of examples/mcore. What its published config.json says of the positions and of
the norm is in FAMILIES; sizes are SIZES; grouped queries, tied embeddings and the scaling of
positions are as the command's flags say.
"""

import json
import re

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4,
         "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 520}
HEAD_SIZE = 8
LATENT = {"q_lora_rank": 12, "kv_lora_rank": 8, "qk_nope_head_dim": 4, "qk_rope_head_dim": 4,
          "v_head_dim": 8}

# (a pattern of FOLDER/SCRIPT, class, base of the positions, epsilon), the first that matches.
FAMILIES = [(re.compile(pattern), *values) for pattern, *values in (
    ("qwen3/", "Qwen3ForCausalLM", 1e6, 1e-6),
    ("qwen25_math/|deepseek_r1_distill_qwen/.*(1point5b|7b)", "Qwen2ForCausalLM", 1e4, 1e-6),
    ("qwen25/.*(14b|32b)|deepseek_r1_distill_qwen/|qwq/", "Qwen2ForCausalLM", 1e6, 1e-5),
    ("qwen", "Qwen2ForCausalLM", 1e6, 1e-6),
    ("seed_oss/", "SeedOssForCausalLM", 1e7, 1e-6),
    ("codellama/", "LlamaForCausalLM", 1e6, 1e-5),
    ("deepseek_math/", "LlamaForCausalLM", 1e4, 1e-6),
    ("llama3|llama31|llama32|llama33|deepseek_r1_distill_llama/", "LlamaForCausalLM", 5e5, 1e-5),
    ("llama2/", "LlamaForCausalLM", 1e4, 1e-5),
    ("yi15/", "LlamaForCausalLM", 5e6, 1e-6),
    ("yi/", "LlamaForCausalLM", 5e6, 1e-5),
    ("internlm3/", "InternLM3ForCausalLM", 5e7, 1e-5),
    ("internlm25/", "InternLM2ForCausalLM", 5e7, 1e-5),
    ("internlm2/", "InternLM2ForCausalLM", 1e6, 1e-5),
    ("mistral/", "MistralForCausalLM", 1e6, 1e-5),
    ("magistral/", "MistralForCausalLM", 1e9, 1e-5),
    ("plm/", "LlamaForCausalLM", 1e4, 1e-6),  # of its tokenizer alone
    ("minicpm3/", "MiniCPM3ForCausalLM", 1e4, 1e-5),
    ("minicpm/", "MiniCPMForCausalLM", 1e4, 1e-5),
    ("phi35/", "Phi3ForCausalLM", 1e4, 1e-5),
    ("gemma2/", "Gemma2ForCausalLM", 1e4, 1e-6),
    ("gemma/", "GemmaForCausalLM", 1e4, 1e-6),
    ("glm4/", "ChatGLMModel", 5e6, 1.5625e-07),
    ("chatglm3/", "ChatGLMModel", 1e4, 1e-5),
    ("baichuan2/", "BaichuanForCausalLM", None, 1e-6),
)]
ALWAYS_TIED = ("Gemma2ForCausalLM", "GemmaForCausalLM", "MiniCPMForCausalLM", "MiniCPM3ForCausalLM")
NEVER_GROUPED = ("BaichuanForCausalLM", "MiniCPM3ForCausalLM")


def numbers(text, count):
    """The first `count` numbers of a list with commas; of fewer, the last again."""
    found = [float(each) for each in text.split(",")]
    return (found + found[-1:] * count)[:count]


def scaling_of(flags, channels):
    """rope_scaling, as the flags of a command say; None: the positions are not scaled."""
    kind = flags.get("rope-scaling-type", [None])[0]
    if kind is None:
        factor = flags.get("dynamic-factor")
        return {"rope_type": "dynamic", "factor": float(factor[0])} if factor else None
    out = {"rope_type": kind}
    names = {"rope-scaling-factor": "factor", "low-freq-factor": "low_freq_factor",
             "high-freq-factor": "high_freq_factor",
             "rope-scaling-original-max-position-embeddings": "original_max_position_embeddings",
             "original-max-position-embeddings": "original_max_position_embeddings"}
    for flag, name in names.items():
        if flag in flags:
            value = float(flags[flag][0])
            out[name] = int(value) if value == int(value) and "max" in name else value
    for flag in ("long-factor", "short-factor"):
        if flag in flags:
            out[flag.replace("-", "_")] = numbers(flags[flag][0], channels // 2)
    return out


def family_fields(name, flags):
    """The keys of config.json that one family has."""
    if name == "ChatGLMModel":
        return {"num_layers": 4, "ffn_hidden_size": 96, "padded_vocab_size": SIZES["vocab_size"], "rmsnorm": True,
                "multi_query_group_num": 4, "multi_query_attention": True, "kv_channels": HEAD_SIZE,
                "add_qkv_bias": True, "layernorm_epsilon": None, "original_rope": True}
    if name.startswith("MiniCPM"):
        out = {"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256}
        return {**out, **LATENT, "attention_bias": False} if "3" in name else out
    if name == "Gemma2ForCausalLM":
        scale = float(flags.get("query-pre-attn-scalar", ["256"])[0])
        return {"query_pre_attn_scalar": scale, "sliding_window": 4096,
                "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
                "hidden_activation": "gelu_pytorch_tanh", "hidden_act": "gelu_pytorch_tanh"}
    return {"GemmaForCausalLM": {"hidden_act": "gelu_pytorch_tanh"},
            "MistralForCausalLM": {"sliding_window": 4096},
            "InternLM2ForCausalLM": {"bias": False},
            "Phi3ForCausalLM": {"sliding_window": None},
            "BaichuanForCausalLM": {"model_max_length": 4096, "z_loss_weight": 0},
            "SeedOssForCausalLM": {"attention_bias": True}}.get(name, {})


def config_of(script, flags, describes):
    """config.json of a script's model. `describes`: its flags describe the model; a conversion's
    do not, whose model is the family's usual one."""
    _, name, base, epsilon = next(
        row for row in FAMILIES if row[0].match(script.removeprefix("examples/mcore/")))
    positions = int(flags.get("max-position-embeddings", ["4096"])[0])
    tied = name in ALWAYS_TIED or describes and "untie-embeddings-and-output-weights" not in flags
    out = {"architectures": [name], "hidden_act": "silu", "torch_dtype": "bfloat16",
           "head_dim": HEAD_SIZE, "rms_norm_eps": epsilon, "tie_word_embeddings": tied,
           "max_position_embeddings": positions, **SIZES, **family_fields(name, flags)}
    if name in NEVER_GROUPED or describes and "group-query-attention" not in flags:
        out["num_key_value_heads"] = SIZES["num_attention_heads"]
    if base is None:
        del out["max_position_embeddings"]
    elif name == "ChatGLMModel":
        out.update(rope_ratio=base / 1e4, seq_length=positions, layernorm_epsilon=epsilon)
    else:
        out["rope_theta"] = base
    channels = LATENT["qk_rope_head_dim"] if name == "MiniCPM3ForCausalLM" else HEAD_SIZE
    scaling = scaling_of(flags, channels)
    if scaling is not None:
        out["rope_scaling"] = scaling
        if scaling["rope_type"] == "longrope":
            out["original_max_position_embeddings"] = min(positions, 4096)
    return out


def key_of(config):
    return json.dumps(config, sort_keys=True)
