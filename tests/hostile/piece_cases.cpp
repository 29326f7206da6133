// The other kinds of tokenizers: SentencePiece's own files, Unigram, WordPiece, folders of
// vocab.json and merges.txt.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace piece_files {
namespace {

const std::string json = "tokenizer.json", pieces = "tokenizer.model";
constexpr const char* encode = "tokenize --model @";
constexpr const char* hello = R"({"text":"hello"})";

auto model(const std::string& members) {
  return
      [text = "{\"model\":{" + members + "}}"](const Folder& folder) { folder.write(json, text); };
}
auto bytes(std::string text) {
  return [text = std::move(text)](const Folder& folder) { folder.write(pieces, text); };
}
const Folder& sentence_piece(const Folder& folder) {
  return folder.copy("tokenizers/sentencepiece/llama-like.model", pieces);
}

// A message of SentencePiece's: a field with a length.
std::string field(int number, const std::string& content) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(content.size()) +
         content;
}
const std::string unknown = field(1, field(1, "<unk>") + "\x18\x02");
const std::string letter = field(1, field(1, "a"));

auto slow(std::string vocab, std::string merges) {
  return [vocab = std::move(vocab), merges = std::move(merges)](const Folder& folder) {
    folder.write("vocab.json", vocab)
        .write("merges.txt", merges)
        .write("config.json", R"({"model_type":"gpt2"})");
  };
}

const std::vector<Case> cases = {
    {"PiecesEmpty", bytes(""), encode, 3, "@/tokenizer.model: the file is no SentencePiece model",
     hello},
    {"PiecesOfGarbage", bytes("garbage, garbage"), encode, 3,
     "@/tokenizer.model: the file is no SentencePiece model", hello},
    {"PiecesCut", [](const Folder& f) { sentence_piece(f).cut(pieces, -3); }, encode, 3,
     "@/tokenizer.model: the file is no SentencePiece model: its fields end in the middle", hello},
    {"PiecesOfALyingLength", bytes("\x0a\xff\xff\xff\xff\x7f"), encode, 3,
     "@/tokenizer.model: the file is no SentencePiece model", hello},
    {"PiecesWithoutAnUnknownOne", bytes(letter), encode, 3,
     "@/tokenizer.model: the file must have one unknown piece, found 0", hello},
    {"PiecesTwice", bytes(unknown + letter + letter), encode, 3,
     "@/tokenizer.model: the file has the piece \"a\" twice", hello},
    {"PieceEmpty", bytes(unknown + field(1, field(1, ""))), encode, 3,
     "@/tokenizer.model: the file has an empty piece, of id 1", hello},
    {"PieceOfAnUnknownType", bytes(unknown + field(1, field(1, "a") + "\x18\x09")), encode, 3,
     "@/tokenizer.model: the file gives piece 1 the unknown type 9", hello},
    {"PieceOfNoScore",
     bytes(unknown + field(1, field(1, "a") + std::string("\x15\0\0\xc0\x7f", 5))), encode, 3,
     "@/tokenizer.model: the file gives the piece \"a\" a score that is no number", hello},
    {"PiecesOfAnUnknownAlgorithm", bytes(unknown + letter + field(2, "\x18\x09")), encode, 3,
     "@/tokenizer.model: the file has the unknown model type 9", hello},
    {"PiecesWithALyingCharacterMap",
     bytes(unknown + letter + field(3, field(2, "\xff\xff\xff\x7fxx"))), encode, 3,
     "@/tokenizer.model: the character map is ", hello},
    {"PiecesOf70Megabytes",
     [](const Folder& f) { f.repeat(pieces, unknown, std::string(1024, '\0'), 70 * 1024, ""); },
     encode, 3, "@/tokenizer.model: ", hello},
    {"PiecesAPipe", [](const Folder& f) { f.pipe(pieces); }, encode, 7,
     "@/tokenizer.model: expected a regular file, found a device or pipe", hello},
    {"UnigramOfNoPieces", model(R"("type":"Unigram","unk_id":0,"vocab":[])"), encode, 3,
     "@/tokenizer.json: \"model\": ", hello},
    {"UnigramOfAnObject", model(R"("type":"Unigram","unk_id":0,"vocab":{"a":0})"), encode, 3,
     "@/tokenizer.json: \"model\": ", hello},
    {"UnigramOfHalfAPair", model(R"("type":"Unigram","unk_id":0,"vocab":[["a"]])"), encode, 3,
     "@/tokenizer.json: \"model\": piece 0 must be a pair of text and score, found ", hello},
    {"UnigramOfATextForAScore", model(R"("type":"Unigram","unk_id":0,"vocab":[["a","b"]])"), encode,
     3, "@/tokenizer.json: \"model\": piece 0 must be a pair of text and score, found ", hello},
    {"UnigramUnknownOutside", model(R"("type":"Unigram","unk_id":7,"vocab":[["a",0.0]])"), encode,
     3, "@/tokenizer.json: \"model\": \"unk_id\" must be an id from 0 to 0", hello},
    {"WordPieceWithoutItsUnknown",
     model(R"("type":"WordPiece","unk_token":"[UNK]","vocab":{"a":0})"), encode, 3,
     "@/tokenizer.json: \"model\": the unknown token \"[UNK]\" is not in the vocabulary", hello},
    {"WordPieceOfNegativeWords",
     model(R"("type":"WordPiece","unk_token":"a","max_input_chars_per_word":-1,"vocab":{"a":0})"),
     encode, 3, "@/tokenizer.json: \"model\": ", hello},
    {"MergesOfThreeWords", slow(R"({"a":0,"b":1,"ab":2})", "#version: 0.2\na b ab\n"), encode, 3,
     "@/merges.txt:2: must be two pieces with one space between them, found \"a b ab\"", hello},
    {"MergesNotUtf8", slow(R"({"a":0,"b":1,"ab":2})", "a \xff\n"), encode, 3,
     "@/merges.txt: not UTF-8 at byte 2", hello},
    {"MergesMissing",
     [](const Folder& f) {
       slow("{\"a\":0}", "")(f);
       f.remove("merges.txt");
     },
     encode, 4, "@", hello},
    {"VocabularyNotJson", slow("{\"a\":", ""), encode, 3, "@/vocab.json: not valid JSON", hello},
};

}  // namespace
}  // namespace piece_files

const std::vector<Case>& piece_cases() {
  return piece_files::cases;
}

}  // namespace troupe::hostile
