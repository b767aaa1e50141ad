"""A checkpoint of a tiny llama whose weights are random: whatever it says, it says without sense."""

import array
import json
import random
import shutil

from server import ROOT

HIDDEN, INNER, HEADS, KV_HEADS, HEAD, LAYERS = 64, 128, 4, 2, 16, 2
LOGITS = 400  # more than the tokenizer has tokens, as published models have
TEMPLATE = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def shapes():
    yield "model.embed_tokens.weight", (LOGITS, HIDDEN)
    yield "lm_head.weight", (LOGITS, HIDDEN)
    yield "model.norm.weight", (HIDDEN,)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        yield f"{at}.input_layernorm.weight", (HIDDEN,)
        yield f"{at}.post_attention_layernorm.weight", (HIDDEN,)
        yield f"{at}.self_attn.q_proj.weight", (HEADS * HEAD, HIDDEN)
        yield f"{at}.self_attn.k_proj.weight", (KV_HEADS * HEAD, HIDDEN)
        yield f"{at}.self_attn.v_proj.weight", (KV_HEADS * HEAD, HIDDEN)
        yield f"{at}.self_attn.o_proj.weight", (HIDDEN, HEADS * HEAD)
        yield f"{at}.mlp.gate_proj.weight", (INNER, HIDDEN)
        yield f"{at}.mlp.up_proj.weight", (INNER, HIDDEN)
        yield f"{at}.mlp.down_proj.weight", (HIDDEN, INNER)


def write_safetensors(path, seed):
    rng = random.Random(seed)
    header, data = {}, array.array("f")
    for name, shape in shapes():
        size = shape[0] * (shape[1] if len(shape) > 1 else 1)
        begin = len(data) * data.itemsize
        data.extend(rng.gauss(1 if len(shape) == 1 else 0, 0.2) for _ in range(size))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data) * data.itemsize]}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data.tobytes())


def random_checkpoint(folder, seed):
    """Writes it into the folder, which must not be there; the same for the same seed."""
    folder.mkdir()
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": HIDDEN,
        "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "head_dim": HEAD, "vocab_size": LOGITS, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "max_position_embeddings": 4096, "tie_word_embeddings": False, "torch_dtype": "float32",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", seed)
    shutil.copy(ROOT / "src/text/testdata/byte_level.json", folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder
