"""The tokenizer in a GGUF file: a byte-level BPE vocabulary with its merges, rebuilt without any other file."""

from __future__ import annotations

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from .errors import ModelUnreadable
from .gguf_file import GgufFile
from .vocabulary import VocabularySource, byte_level_alphabet, byte_level_bytes, refusing_what_the_library_refuses

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5        # values of tokenizer.ggml.token_type
SPECIAL_TYPES = (UNKNOWN, CONTROL)
END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
# Ends of a turn or a text that files often leave out of the keys above; taken only where they are control tokens.
END_TEXTS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>", "</s>")
LLAMA3_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def vocabulary_of_gguf(file: GgufFile) -> VocabularySource:
    """Raises ModelUnreadable if the vocabulary is incomplete, contradicts itself, or is of an unknown kind."""
    model = file.field("tokenizer.ggml.model", str)
    if model != "gpt2":
        raise ModelUnreadable(f"{file.path}: a vocabulary of the kind {model!r} can't be read from a GGUF file; known is 'gpt2' "
                              "(byte-level BPE). Serve the model's Hugging Face folder, with its tokenizer.json, instead.")
    tokens = _texts(file, "tokenizer.ggml.tokens")
    types = file.field("tokenizer.ggml.token_type", np.ndarray, np.full(len(tokens), NORMAL)).tolist()
    if len(types) != len(tokens):
        raise ModelUnreadable(f"{file.path}: {len(tokens)} tokens with {len(types)} types. Fetch the file again.")
    ids = {text: i for i, text in enumerate(tokens)}
    if len(ids) != len(tokens):
        raise ModelUnreadable(f"{file.path}: {len(tokens) - len(ids)} tokens are there twice. Fetch the file again.")
    specials = {text: i for i, text in enumerate(tokens) if types[i] in SPECIAL_TYPES and text}
    alphabet = byte_level_alphabet()
    token_bytes = [b"" if kind in (*SPECIAL_TYPES, UNUSED) else byte_level_bytes(text, alphabet)
                   for text, kind in zip(tokens, types, strict=True)]
    token_bytes += [b""] * _spare_rows(file, len(tokens))
    bos_id = _token_id(file, "bos_token_id", len(tokens))
    adds_bos = file.field("tokenizer.ggml.add_bos_token", bool, _pre(file) == "llama-bpe")
    return VocabularySource(
        backend=_backend(file, ids, specials, [text for text, kind in zip(tokens, types, strict=True) if kind == USER_DEFINED]),
        token_bytes=token_bytes,
        specials=specials,
        eos_ids=_eos_ids(file, specials, len(tokens)),
        bos_id=bos_id,
        prompt_prefix=(bos_id,) if adds_bos and bos_id is not None else (),
        chat_template=file.field("tokenizer.chat_template", str, "") or None,
        template_variables=_template_variables(file, tokens),
    )


def _spare_rows(file: GgufFile, n_tokens: int) -> int:
    """Some embeddings are padded to a round number of rows: no token is behind the last ones."""
    embedding = file.tensors.get("token_embd.weight")
    n_rows = embedding.shape[0] if embedding else n_tokens
    if n_tokens > n_rows:
        raise ModelUnreadable(f"{file.path}: {n_tokens} tokens, and an embedding of {n_rows} rows. Fetch the file again.")
    return n_rows - n_tokens


def _backend(file: GgufFile, ids: dict[str, int], specials: dict[str, int], user_defined: list[str]) -> Tokenizer:
    merges = [(left, right) for left, _, right in (merge.partition(" ") for merge in _texts(file, "tokenizer.ggml.merges"))]
    pre = _pre(file)
    with refusing_what_the_library_refuses(file.path):
        backend = Tokenizer(models.BPE(ids, merges, ignore_merges=pre == "llama-bpe"))
        backend.pre_tokenizer = _pre_tokenizer(file, pre)
        backend.decoder = decoders.ByteLevel()
        backend.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in specials])
        backend.add_tokens([AddedToken(text, normalized=False) for text in user_defined])
        return backend


def _pre_tokenizer(file: GgufFile, pre: str) -> pre_tokenizers.PreTokenizer:
    """How text is cut into words before merging. The names are llama.cpp's, the rules those models' own."""
    spaced = file.field("tokenizer.ggml.add_space_prefix", bool, False)
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    known = {
        "gpt-2": gpt2,
        "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), gpt2]),
        "llama-bpe": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3_WORDS), "isolated"),
                                              pre_tokenizers.ByteLevel(add_prefix_space=spaced, use_regex=False)]),
    }
    if pre not in known:
        raise ModelUnreadable(f"{file.path}: the pre-tokenizer {pre!r} is not known; known are {', '.join(known)}. "
                              "Serve the model's Hugging Face folder, with its tokenizer.json, instead.")
    return known[pre]


def _pre(file: GgufFile) -> str:
    return str(file.field("tokenizer.ggml.pre", str, "(none)"))


def _texts(file: GgufFile, key: str) -> list[str]:
    values = file.field(key, (list, np.ndarray))
    if not isinstance(values, list):
        raise ModelUnreadable(f"{file.path}: {key!r} holds numbers where texts belong. Fetch the file again.")
    return values


def _token_id(file: GgufFile, name: str, n_tokens: int) -> int | None:
    token_id = file.field(f"tokenizer.ggml.{name}", int, -1)
    if token_id >= n_tokens:
        raise ModelUnreadable(f"{file.path}: {name} is {token_id} in a vocabulary of {n_tokens} tokens. Fetch the file again.")
    return token_id if token_id >= 0 else None


def _eos_ids(file: GgufFile, specials: dict[str, int], n_tokens: int) -> tuple[int, ...]:
    named = [token_id for key in END_KEYS if (token_id := _token_id(file, key, n_tokens)) is not None]
    known = [specials[text] for text in END_TEXTS if text in specials]
    if not named and not known:
        raise ModelUnreadable(f"{file.path}: no token ends a text (tokenizer.ggml.eos_token_id is missing).")
    return tuple(dict.fromkeys(named + known))


def _template_variables(file: GgufFile, tokens: list[str]) -> dict[str, str]:
    keys = {"bos_token": "bos_token_id", "eos_token": "eos_token_id", "unk_token": "unknown_token_id",
            "pad_token": "padding_token_id"}
    found = {name: _token_id(file, key, len(tokens)) for name, key in keys.items()}
    return {name: tokens[token_id] for name, token_id in found.items() if token_id is not None}
