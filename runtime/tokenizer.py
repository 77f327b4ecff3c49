"""Text to token ids and back, and a chat to the ids of its prompt. Imports no torch.

What a client writes can never become a special token: `encode` leaves special tokens out unless it's told
that the text is the model's own, and `encode_chat` tells the template's text from the messages' by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tokenizers

from .chat_template import ChatTemplate, ChatTemplateError
from .errors import ModelUnreadable
from .folder_vocabulary import vocabulary_of_folder
from .gguf_file import GgufFile
from .gguf_vocabulary import vocabulary_of_gguf
from .vocabulary import VocabularySource, refusing_what_the_library_refuses

PRIVATE_USE = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))


def load_tokenizer(path: Path) -> Tokenizer:
    """From a GGUF file or a Hugging Face folder. Raises ModelUnreadable."""
    if not path.exists():
        raise ModelUnreadable(f"{path}: no such file or folder; `turnstile pull` fetches the embedded model.")
    source = vocabulary_of_folder(path) if path.is_dir() else vocabulary_of_gguf(GgufFile(path))
    with refusing_what_the_library_refuses(path):
        return Tokenizer(source)


class Tokenizer:
    """Immutable, and safe to use from several threads.

    token_bytes      what each id adds to the text; b"" for special tokens. As long as the model's logits.
    eos_ids          any of these ends an answer
    special_ids      ids that plain text never encodes to
    special_tokens   the same by the texts that stand for them
    prompt_prefix    ids that the model expects before a bare text (its beginning-of-text token, or none)
    chat_template    the template's source; None if the model has none
    """

    def __init__(self, source: VocabularySource) -> None:
        """Raises ChatTemplateError if the source's template is no valid one."""
        self.token_bytes = source.token_bytes
        self.eos_ids = source.eos_ids
        self.bos_id = source.bos_id
        self.prompt_prefix = source.prompt_prefix
        self.special_ids = frozenset(source.specials.values())
        self.special_tokens: Mapping[str, int] = MappingProxyType(dict(source.specials))
        self._special_text = _any_of(source.specials)
        self._trusting = source.backend
        self._plain = tokenizers.Tokenizer.from_str(source.backend.to_str())
        self._plain.encode_special_tokens = True      # the library's name for: special tokens are text like any other
        self._template = ChatTemplate(source.chat_template, source.template_variables) if source.chat_template else None

    @property
    def vocabulary_size(self) -> int:
        return len(self.token_bytes)

    @property
    def chat_template(self) -> str | None:
        return self._template.source if self._template else None

    def encode(self, text: str, allow_special: bool = False) -> list[int]:
        """The ids of the text, nothing put before or after it. Lone surrogates become U+FFFD.

        With `allow_special`, the special tokens' texts become those tokens: only for text that no client wrote.
        """
        text = _well_formed(text)
        if allow_special:
            return self._trusting.encode(text, add_special_tokens=False).ids
        ids = self._plain.encode(text, add_special_tokens=False).ids
        if self.special_ids.isdisjoint(ids):
            return ids
        return self._encode_broken_up(text)

    def encode_prompt(self, text: str) -> list[int]:
        """A client's bare text as the model wants it to begin."""
        return [*self.prompt_prefix, *self.encode(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids; special tokens add nothing, bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self.token_bytes[token_id] for token_id in ids).decode("utf-8", errors="replace")

    def spelled_out(self) -> list[bytes]:
        """`token_bytes`, but special tokens that end no answer add their texts: for answers with tags in them."""
        spelled = list(self.token_bytes)
        for text, token_id in self.special_tokens.items():
            if token_id not in self.eos_ids:
                spelled[token_id] = text.encode()
        return spelled

    def render_chat(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> str:
        """The prompt as text, for reading. Encode with `encode_chat`, which knows whose text is whose.

        Raises ChatTemplateError if the model has no template or its template refuses the messages.
        """
        if self._template is None:
            raise ChatTemplateError("this model has no chat template: use the completions endpoint, or an instruct model")
        return self._template.render(messages, add_generation_prompt)

    def encode_chat(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> list[int]:
        """The prompt's ids: the template's special tokens as such, everything in the messages as plain text.

        Before rendering, each special token's text inside a message is replaced by a character that occurs in no
        message (so the template still sees real, trimmable text of its own kind); after the render the text between
        special tokens gets those texts back and is encoded as plain text. Chats without such texts, nearly all,
        take the direct way, and equal what `transformers` makes of them. Raises ChatTemplateError like `render_chat`.
        """
        messages = _map_texts(messages, _well_formed)
        stand_ins = self._stand_ins(messages)
        if not stand_ins:
            return self.encode(self.render_chat(messages, add_generation_prompt), allow_special=True)
        hidden = _map_texts(messages, lambda text: self._special_text.sub(lambda found: stand_ins[found[0]], text))
        return self._encode_hidden(self.render_chat(hidden, add_generation_prompt), stand_ins)

    def _stand_ins(self, messages: Any) -> dict[str, str]:
        """A private-use character for each special text in the messages; empty if there is none."""
        texts = list(_texts_in(messages))
        found = sorted({match for text in texts for match in self._special_text.findall(text)})
        if not found:
            return {}
        taken = set().union(self.chat_template or "", *texts)
        free = (chr(code) for block in PRIVATE_USE for code in block if chr(code) not in taken)
        stand_ins = dict(zip(found, free, strict=False))
        if len(stand_ins) < len(found):
            raise ChatTemplateError("the messages use every private-use character there is beside special tokens: remove either")
        return stand_ins

    def _encode_hidden(self, rendered: str, stand_ins: Mapping[str, str]) -> list[int]:
        originals = str.maketrans({character: text for text, character in stand_ins.items()})
        encoding = self._trusting.encode(rendered, add_special_tokens=False)
        ids: list[int] = []
        plain_from = 0
        for token_id, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if token_id in self.special_ids:
                ids += [*self.encode(rendered[plain_from:start].translate(originals)), token_id]
                plain_from = end
        return ids + self.encode(rendered[plain_from:].translate(originals))

    def _encode_broken_up(self, text: str) -> list[int]:
        """For vocabularies whose merges, too, lead to a special token: each is cut after its first character."""
        cuts = [0, *(found.start() + 1 for found in self._special_text.finditer(text)), len(text)]
        pieces = [text[start:end] for start, end in pairwise(cuts)]
        ids = [token_id for piece in pieces for token_id in self._plain.encode(piece, add_special_tokens=False).ids]
        return [token_id for token_id in ids if token_id not in self.special_ids]


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(filter(None, texts), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def _texts_in(value: Any) -> Iterator[str]:
    """Every string in nested lists and dictionaries, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts_in([*value.keys(), *value.values()])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts_in(item)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A copy of nested lists and dictionaries with every string in them changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {_map_texts(key, change): _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_texts(item, change) for item in value]
    return value


def _well_formed(text: str) -> str:
    """JSON can carry half of a surrogate pair, which is no character and can't be encoded."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
