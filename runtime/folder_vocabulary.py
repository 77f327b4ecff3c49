"""The tokenizer of a Hugging Face folder: tokenizer.json, with what its neighbours say about special tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from .errors import ModelUnreadable
from .model_config import LARGEST_SIZE, read_json
from .vocabulary import (
    WORD_START,
    VocabularySource,
    byte_level_alphabet,
    byte_level_bytes,
    refusing_what_the_library_refuses,
    sentencepiece_bytes,
)

TEMPLATE_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")


def vocabulary_of_folder(folder: Path) -> VocabularySource:
    """Raises ModelUnreadable if tokenizer.json is missing or damaged, or of a kind whose tokens' bytes aren't known."""
    raw = read_json(folder / "tokenizer.json")
    backend = _backend(folder / "tokenizer.json")
    settings = _optional_json(folder / "tokenizer_config.json")
    config = read_json(folder / "config.json")
    ids = backend.get_vocab(with_added_tokens=True)
    n_rows = _row_count(folder, config, ids)
    added = {token.content: (i, token.special) for i, token in backend.get_added_tokens_decoder().items()}
    specials = {text: i for text, (i, special) in added.items() if special}
    variables = {name: text for name in TEMPLATE_TOKENS if (text := _token_text(settings.get(name)))}
    eos_ids = _eos_ids(folder, config, ids.get(variables.get("eos_token", "")), n_rows)
    return VocabularySource(
        backend=backend,
        token_bytes=_token_bytes(folder, raw, ids, added, n_rows),
        specials=specials,
        eos_ids=eos_ids,
        bos_id=ids.get(variables.get("bos_token", "")),
        prompt_prefix=_prompt_prefix(folder, backend, eos_ids),
        chat_template=_chat_template(folder, settings),
        template_variables=variables,
    )


def _backend(path: Path) -> Tokenizer:
    with refusing_what_the_library_refuses(path):
        backend = Tokenizer.from_file(str(path))
        backend.no_truncation()     # some folders carry a training run's limits
        backend.no_padding()
        return backend


def _optional_json(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}


def _row_count(folder: Path, config: dict[str, Any], ids: dict[str, int]) -> int:
    rows, highest = config.get("vocab_size"), max(ids.values(), default=-1)
    if type(rows) is not int or not highest < rows <= LARGEST_SIZE:
        raise ModelUnreadable(f"{folder}: tokenizer.json has a token {highest}; config.json's vocab_size is {rows}. "
                              "The two files do not belong together.")
    return rows


def _token_bytes(folder: Path, raw: dict[str, Any], ids: dict[str, int], added: dict[str, tuple[int, bool]],
                 n_rows: int) -> list[bytes]:
    decode: Callable[[str], bytes]
    types = set(_component_types([raw.get("decoder"), raw.get("pre_tokenizer"), raw.get("normalizer")]))
    if "ByteLevel" in types:
        decode = partial(byte_level_bytes, alphabet=byte_level_alphabet())
    elif "ByteFallback" in types or "Metaspace" in types or any(token.startswith(WORD_START) for token in ids):
        decode = sentencepiece_bytes
    else:
        raise ModelUnreadable(f"{folder / 'tokenizer.json'}: the bytes of its tokens aren't known: neither a byte-level nor a "
                              f"SentencePiece vocabulary (its parts: {', '.join(sorted(types)) or 'none'}).")
    token_bytes = [b""] * n_rows
    for token, i in ids.items():
        if token not in added:
            token_bytes[i] = decode(token)
    for token, (i, special) in added.items():
        token_bytes[i] = b"" if special else token.encode("utf-8")
    return token_bytes


def _component_types(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from ([value["type"]] if isinstance(value.get("type"), str) else [])
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _component_types(item)


def _token_text(value: Any) -> str:
    """Settings name a token by its text, or by an object with its text."""
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) else ""


def _eos_ids(folder: Path, config: dict[str, Any], eos_id: int | None, n_rows: int) -> tuple[int, ...]:
    found: list[Any] = []
    for value in (_optional_json(folder / "generation_config.json").get("eos_token_id"), config.get("eos_token_id"), eos_id):
        found += value if isinstance(value, list) else [] if value is None else [value]
    if not found or not all(type(token_id) is int and 0 <= token_id < n_rows for token_id in found):
        raise ModelUnreadable(f"{folder}: the ids of the tokens that end a text are {found}; expected at least one, "
                              f"below {n_rows}, in generation_config.json or config.json (eos_token_id).")
    return tuple(dict.fromkeys(found))


def _prompt_prefix(folder: Path, backend: Tokenizer, eos_ids: tuple[int, ...]) -> tuple[int, ...]:
    """What the tokenizer's own template puts around an empty text, without an end-of-text mark behind it."""
    with refusing_what_the_library_refuses(folder / "tokenizer.json"):
        ids = backend.encode("", add_special_tokens=True).ids
    return tuple(token_id for token_id in ids if token_id not in eos_ids)


def _chat_template(folder: Path, settings: dict[str, Any]) -> str | None:
    """A file of its own goes before the settings; of several named templates the default one is taken."""
    path = folder / "chat_template.jinja"
    try:
        if path.exists():
            return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelUnreadable(f"{path}: not readable: {error}. Fetch the model again.") from None
    template = settings.get("chat_template")
    if isinstance(template, list):
        named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = named.get("default")
    return template if isinstance(template, str) else None
