"""Tokenizers against the library: those of tests/data, and random components with small trained vocabularies."""
import os
import shutil
import tempfile

import sentencepiece
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

import compare

BUNDLED = ["tokenizers/gpt2", "tokenizers/minimind", "tokenizers/mistral-7b", "tokenizers/qwen2.5", "models/digit-completion", "models/stories260k/hf",
           "models/tinystories-656k"]
PIECES = "models/stories260k/tok512.model"


def check(program, path, library, texts, rng, report, where):
    """Encoding of the texts and decoding of random ids."""
    lines = compare.answers(program, ["tokenize", "--model", path], [{"text": text} for text in texts])
    for text, line in zip(texts, lines):
        report.compare(where, text, library.encode(text, add_special_tokens=False).ids, line.get("ids", line))
    size = library.get_vocab_size()
    ids = [[rng.randrange(size) for _ in range(rng.randrange(1, 12))] for _ in range(max(1, len(texts) // 5))]
    lines = compare.answers(program, ["tokenize", "--decode", "--model", path], [{"ids": row} for row in ids])
    for row, line in zip(ids, lines):
        report.compare(f"{where} decoded", str(row), library.decode(row, skip_special_tokens=True), line.get("text", line))


def texts(program, count, rng, report):
    for name in BUNDLED:
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(os.path.join(compare.DATA, name, "tokenizer.json"), folder)
            library = tokenizers.Tokenizer.from_file(path)
            special = [token.content for token in library.get_added_tokens_decoder().values()][:20]
            check(program, path, library, compare.random_texts(rng, count, special), rng, report, name)
    path = os.path.join(compare.DATA, PIECES)
    library = sentencepiece.SentencePieceProcessor(model_file=path)
    inputs = compare.random_texts(rng, count)
    lines = compare.answers(program, ["tokenize", "--model", path], [{"text": text} for text in inputs])
    for text, line in zip(inputs, lines):
        report.compare(PIECES, text, library.encode(text), line.get("ids", line))


NORMALIZERS = [
    normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD, normalizers.Lowercase, normalizers.StripAccents, normalizers.Nmt,
    lambda: normalizers.Strip(left=True, right=False), lambda: normalizers.Prepend("\u2581"), lambda: normalizers.Replace(" ", "\u2581"),
    lambda: normalizers.Replace(tokenizers.Regex(r"\s+"), " "), lambda: normalizers.Replace(tokenizers.Regex(r"\p{Han}"), "h"),
    lambda: normalizers.BertNormalizer(lowercase=False), normalizers.BertNormalizer]
PATTERNS = [r"\p{Han}+", r"\p{Arabic}+", r"\p{Hiragana}+", r"\b", r"[[:alpha:]]+", r"[[:punct:]]", r"\p{Punct}", r"[[:word:]]+", r"[[:graph:]]+", r"[[:upper:]]", r"\w+|[^\w\s]+", r"\d{1,3}",
            r"(?i:'s|'t|'re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|\s+(?!\S)|\s+", r"[^\s\p{L}\p{N}]+", r"\P{L}", r"\p{^Han}", r"\h+", r"[\p{Thai}\p{Hangul}]"]
BEHAVIORS = ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]


def pre_tokenizer(rng):
    kind = rng.randrange(10)
    if kind == 0:
        return pre_tokenizers.ByteLevel(add_prefix_space=rng.random() < 0.5, use_regex=rng.random() < 0.5)
    if kind == 1:
        return pre_tokenizers.Metaspace(prepend_scheme=rng.choice(["always", "first", "never"]), split=rng.random() < 0.5)
    if kind == 2:
        return pre_tokenizers.Digits(individual_digits=rng.random() < 0.5)
    if kind == 3:
        return pre_tokenizers.Punctuation(behavior=rng.choice(BEHAVIORS))
    if kind == 4:
        return pre_tokenizers.UnicodeScripts()
    if kind == 5:
        return rng.choice([pre_tokenizers.Whitespace, pre_tokenizers.WhitespaceSplit, pre_tokenizers.BertPreTokenizer])()
    pattern = rng.choice(PATTERNS)
    return pre_tokenizers.Split(tokenizers.Regex(pattern), behavior=rng.choice(BEHAVIORS), invert=rng.random() < 0.2)


def random_tokenizer(rng, corpus):
    kind = rng.choice(["bpe", "unigram", "wordpiece", "wordlevel"])
    unk = "[UNK]"
    model = {"bpe": lambda: models.BPE(unk_token=unk), "unigram": models.Unigram, "wordpiece": lambda: models.WordPiece(unk_token=unk),
             "wordlevel": lambda: models.WordLevel(unk_token=unk)}[kind]()
    out = tokenizers.Tokenizer(model)
    chosen = [rng.choice(NORMALIZERS)() for _ in range(rng.randrange(3))]
    if chosen:
        out.normalizer = normalizers.Sequence(chosen)
    chosen = [pre_tokenizer(rng) for _ in range(rng.randrange(1, 4))]
    out.pre_tokenizer = pre_tokenizers.Sequence(chosen)
    trainer = {"bpe": trainers.BpeTrainer, "unigram": trainers.UnigramTrainer, "wordpiece": trainers.WordPieceTrainer,
               "wordlevel": trainers.WordLevelTrainer}[kind]
    options = {"unk_token": unk} if kind == "unigram" else {}
    out.train_from_iterator(corpus, trainer(vocab_size=rng.randrange(300, 900) + (3000 if kind == "unigram" else 0), special_tokens=[unk, "<s>"], show_progress=False, **options))
    out.decoder = rng.choice([decoders.ByteLevel(), decoders.Metaspace(), decoders.WordPiece(), decoders.BPEDecoder(), decoders.ByteFallback(),
                              decoders.Sequence([decoders.Replace("\u2581", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])])
    return out


def components(program, count, rng, report):
    corpus = compare.random_texts(rng, 300)
    for index in range(count):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokenizer.json")
            library = random_tokenizer(rng, corpus)
            library.save(path)
            check(program, path, library, compare.random_texts(rng, 50, ["<s>", "[UNK]"]), rng, report, f"tokenizer {index} {describe(library)}")


def describe(library):
    """The names of its components."""
    names = [type(library.model).__name__]
    for stage in (library.normalizer, library.pre_tokenizer, library.decoder):
        names.append(str(stage)[:400] if stage else "None")
    return " ".join(names)
