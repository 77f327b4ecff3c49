"""Text to ids and back: equal to a plain BPE, and never a special token out of a client's text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gguf import GGUFReader
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from runtime.errors import ModelUnreadable
from runtime.gguf_file import GgufFile
from runtime.gguf_vocabulary import vocabulary_of_gguf
from runtime.tokenizer import Tokenizer, load_tokenizer
from runtime.vocabulary import VocabularySource
from tests.support.plain_bpe import PlainBpe
from tests.support.tiny_models import SPECIALS, save_folder, save_gguf, tiny_config, tiny_llama, tiny_tokenizer

TEXTS = [
    "", " ", "Hello, world!", "The quick brown fox jumps over the lazy dog.", "don't we'll I'm you've he'd it's they're",
    "def f(x):\n    return x ** 2  # squared\n\n\n", '{"name": "Ada", "age": 36, "tags": ["a", "b"], "x": -1.5e10}',
    "1234567890 3.14159 1,000,000", "two  spaces  1 then   digits   22", "tabs\tand\r\nnewlines\n\n\t\t end ",
    "   leading and trailing   ",
    "naïve café über straße", "日本語のテキストと中文文本", "Привет, мир! Γειά σου", "مرحبا بالعالم שלום",
    "emoji 🙂🚀👨‍👩‍👧‍👦 flags 🇫🇷",
    "a" * 300, "=" * 77, "½ ² Ⅷ ٣ digits of other kinds", "\u200b\ufeff\u00a0odd spaces\u2003", "<|im_start|>user\nhi<|im_end|>",
    "\x00\x01\x7f control",
    "https://example.com/a/b?c=d&e=%20f", "SELECT * FROM t WHERE a = 'b';", "CamelCase snake_case kebab-case SCREAMING_CASE",
]
# The real vocabulary has no token for some bytes that its training text never showed: six control characters, and the
# lead bytes of the code points from U+40000 to U+BFFFF, none of which is assigned.
known_characters = st.characters(exclude_categories=["Cs"], exclude_characters="\x04\x06\x13\x14\x16\x1d", max_codepoint=0x3FFFF)
any_text = st.text(known_characters, max_size=60)


@pytest.fixture(scope="module")
def plain(gguf_reader: GGUFReader) -> PlainBpe:
    fields = gguf_reader.fields
    return PlainBpe(fields["tokenizer.ggml.tokens"].contents(), fields["tokenizer.ggml.merges"].contents())


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return load_tokenizer(save_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf").path)


@pytest.mark.parametrize("text", TEXTS)
def test_ids_are_those_of_a_plain_bpe(text: str, tokenizer: Tokenizer, plain: PlainBpe) -> None:
    assert tokenizer.encode(text) == plain.encode(text)


@settings(max_examples=150, deadline=None)
@given(text=any_text)
def test_ids_of_any_text_are_those_of_a_plain_bpe(text: str, tokenizer: Tokenizer, plain: PlainBpe) -> None:
    assert tokenizer.encode(text) == plain.encode(text)


@settings(max_examples=100, deadline=None)
@given(text=any_text)
def test_decoding_gives_the_text_back(text: str, tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert b"".join(tokenizer.token_bytes[token_id] for token_id in ids) == text.encode("utf-8")


def test_the_real_vocabulary_is_described_in_full(tokenizer: Tokenizer) -> None:
    assert tokenizer.vocabulary_size == len(tokenizer.token_bytes) == 49152
    assert tokenizer.special_ids == frozenset(range(17))
    assert tokenizer.eos_ids == (2, 0)                            # <|im_end|>, <|endoftext|>
    assert (tokenizer.bos_id, tokenizer.prompt_prefix) == (1, ())
    assert [i for i, token in enumerate(tokenizer.token_bytes) if not token] == list(range(17))
    assert (tokenizer.token_bytes[28], tokenizer.token_bytes[198], tokenizer.token_bytes[216]) == (b",", b"\n", b" ")


def test_characters_whose_bytes_have_no_token_are_left_out_as_by_every_tokenizer_of_this_vocabulary(
        tokenizer: Tokenizer, plain: PlainBpe) -> None:
    assert tokenizer.encode("a\x16b\U00080000c") == plain.encode("a\x16b\U00080000c")
    assert tokenizer.decode(tokenizer.encode("a\x16b")) == "ab"


def test_special_texts_are_special_tokens_only_where_that_is_allowed(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("<|im_end|>", allow_special=True) == [2]
    plain_ids = tokenizer.encode("<|im_end|>")
    assert tokenizer.special_ids.isdisjoint(plain_ids)
    assert tokenizer.decode(plain_ids) == "<|im_end|>"


@settings(max_examples=100, deadline=None)
@given(parts=st.lists(st.one_of(st.sampled_from([*SPECIALS, "<|", "|>", "im_end", "<", " ", "\n"]), any_text), max_size=8))
def test_no_plain_text_encodes_to_a_special_token(parts: list[str], tokenizer: Tokenizer) -> None:
    text = "".join(parts)
    ids = tokenizer.encode(text)
    assert tokenizer.special_ids.isdisjoint(ids)
    assert tokenizer.decode(ids) == text


def test_a_special_token_that_merges_lead_to_is_still_not_reached_by_plain_text() -> None:
    vocabulary = {"a": 0, "b": 1, "ab": 2, "!": 3}
    backend = Backend(models.BPE(vocabulary, [("a", "b")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.add_special_tokens([AddedToken("ab", special=True, normalized=False)])
    tokenizer = Tokenizer(VocabularySource(backend, [b"a", b"b", b"", b"!"], {"ab": 2}, (3,), None))
    assert tokenizer.encode("aab!", allow_special=True) == [0, 2, 3]
    assert tokenizer.encode("aabab!") == [0, 0, 1, 0, 1, 3]


def test_half_a_surrogate_pair_becomes_a_replacement_character_and_a_whole_one_its_character(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffdb"
    assert tokenizer.encode("\ud83d\ude42") == tokenizer.encode("🙂")


def test_decoding_bytes_that_are_no_utf8_gives_replacement_characters(tokenizer: Tokenizer) -> None:
    first_byte_of_two = tokenizer.token_bytes.index(b"\xc3")
    assert tokenizer.decode([first_byte_of_two]) == "\ufffd"


def test_no_torch_is_imported_for_a_tokenizer() -> None:
    code = "import sys, runtime.tokenizer; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_folder(tmp_path, tiny_llama(config=tiny_config(vocab_size=330)))


@pytest.mark.parametrize("text", ["", "the cat 123", "hello <|im_end|> there", "über 🙂", "  two  spaces 1"])
def test_a_folder_and_a_gguf_file_of_one_vocabulary_agree_with_the_tokenizer_that_both_came_from(
        text: str, folder: Path, tiny: Tokenizer) -> None:
    expected = tiny_tokenizer().encode(text, add_special_tokens=False).ids
    from_folder = load_tokenizer(folder)
    assert from_folder.encode(text, allow_special=True) == tiny.encode(text, allow_special=True) == expected
    assert from_folder.encode(text) == tiny.encode(text)


def test_a_folders_vocabulary_is_as_long_as_the_models_logits(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    assert tokenizer.vocabulary_size == 330
    assert tokenizer.token_bytes[320:] == [b""] * 10
    assert tokenizer.special_ids == {0, 1, 2}


def test_a_folders_end_tokens_come_from_all_its_settings_the_generation_settings_first(folder: Path) -> None:
    assert load_tokenizer(folder).eos_ids == (2, 0)
    (folder / "generation_config.json").unlink()
    assert load_tokenizer(folder).eos_ids == (2,)


def test_a_folder_without_any_end_token_is_refused(folder: Path) -> None:
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        raw = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({key: value for key, value in raw.items() if not key.startswith("eos_token")}))
    with pytest.raises(ModelUnreadable, match="expected at least one"):
        load_tokenizer(folder)


def test_a_vocabulary_larger_than_the_model_is_refused(folder: Path) -> None:
    raw = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(raw | {"vocab_size": 300}))
    with pytest.raises(ModelUnreadable, match=r"has a token 307; config\.json's vocab_size is 300"):
        load_tokenizer(folder)


@pytest.mark.parametrize("content", ["{}", "[]", "no json", '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}'])
def test_a_damaged_tokenizer_file_is_refused(content: str, folder: Path) -> None:
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(ModelUnreadable, match=r"tokenizer\.json: not "):
        load_tokenizer(folder)


def test_a_vocabulary_whose_bytes_arent_known_is_refused(folder: Path) -> None:
    Backend(models.WordLevel({"a": 0, "<unk>": 1}, "<unk>")).save(str(folder / "tokenizer.json"))
    with pytest.raises(ModelUnreadable, match="the bytes of its tokens aren't known"):
        load_tokenizer(folder)


@pytest.fixture
def llama2_folder(folder: Path) -> Path:
    """A vocabulary as Llama 2 has it: SentencePiece's word starts, unknown characters as bytes, a token at the beginning."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "h", "i", "▁h", "▁hi"]
    backend = Backend(models.BPE({token: i for i, token in enumerate(tokens)}, [("▁", "h"), ("▁h", "i")],
                                 unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    backend.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in ("<unk>", "<s>", "</s>")])
    backend.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", 1)])
    backend.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": {"content": "<s>"}, "eos_token": "</s>"}))
    return folder


def test_a_sentencepiece_vocabularys_tokens_are_known_by_their_bytes(llama2_folder: Path) -> None:
    tokenizer = load_tokenizer(llama2_folder)
    assert tokenizer.token_bytes[3 + 0x0A] == b"\n"
    assert tokenizer.token_bytes[3 + 0xE9] == b"\xe9"
    assert tokenizer.token_bytes[-330 + 263] == b" hi"
    assert tokenizer.decode(tokenizer.encode("hi hi\n🙂")) == " hi hi\n🙂"


def test_a_bare_prompt_begins_with_what_the_model_expects_and_bare_text_does_not(llama2_folder: Path) -> None:
    tokenizer = load_tokenizer(llama2_folder)
    assert (tokenizer.bos_id, tokenizer.prompt_prefix) == (1, (1,))
    assert tokenizer.encode_prompt("hi") == [1, 263]
    assert tokenizer.encode("hi") == [263]
    assert tokenizer.special_ids.isdisjoint(tokenizer.encode("<s>hi</s>"))


GGUF_REFUSALS = {
    "vocabulary of the kind 'llama' can't be read": {"tokenizer.ggml.model": "llama"},
    "pre-tokenizer 'deepseek-llm' is not known; known are gpt-2, smollm, llama-bpe": {"tokenizer.ggml.pre": "deepseek-llm"},
    "chat template can't be compiled": {"tokenizer.chat_template": "{% for message in messages %}{{ message }"},
}


@pytest.mark.parametrize("message", GGUF_REFUSALS)
def test_a_gguf_vocabulary_of_an_unknown_kind_is_refused_by_name(message: str, tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "m.gguf", fields=GGUF_REFUSALS[message]).path
    with pytest.raises(ModelUnreadable, match=message):
        load_tokenizer(path)


def test_a_gguf_vocabulary_cut_as_llama3_cuts_it_keeps_three_digits_together(tmp_path: Path) -> None:
    source = vocabulary_of_gguf(GgufFile(save_gguf(tmp_path / "m.gguf", fields={"tokenizer.ggml.pre": "llama-bpe"}).path))
    cut = source.backend.pre_tokenizer.pre_tokenize_str("I'LL pay 12345 euros\n\n now")
    assert [word for word, _ in cut] == ["I", "'LL", "Ġpay", "Ġ", "123", "45", "Ġeuros", "ĊĊ", "Ġnow"]
    assert source.prompt_prefix == (1,)
