// Tokenizers whose tables contradict themselves, and texts that are made to be slow.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace tokenizer_files {
namespace {

const std::string file = "tokenizer.json";
constexpr const char* encode = "tokenize --model @";
constexpr const char* decode = "tokenize --decode --model @";
constexpr const char* hello = R"({"text":"hello"})";

auto text(std::string bytes) {
  return [bytes = std::move(bytes)](const Folder& folder) { folder.write(file, bytes); };
}

// A tokenizer.json of this model, with more members before it.
auto model(const std::string& members, const std::string& before = "") {
  return text("{" + before + R"("model":{)" + members + "}}");
}

auto bpe(const std::string& vocab, const std::string& merges, const std::string& before = "") {
  return model(R"("type":"BPE","vocab":)" + vocab + R"(,"merges":)" + merges, before);
}

const std::string letters = R"({"a":0,"b":1,"ab":2})";

// A word-level tokenizer that splits by this expression.
auto splits_by(const std::string& regex) {
  return model(R"("type":"WordLevel","unk_token":"a","vocab":{"a":0})",
               R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":")" + regex +
                   R"("},"behavior":"Isolated","invert":false},)");
}

auto added(const std::string& tokens) {
  return bpe(letters, "[]", R"("added_tokens":)" + tokens + ",");
}
auto stage(const std::string& name, const std::string& value) {
  return bpe(letters, "[]", "\"" + name + "\":" + value + ",");
}

std::string line_of(const std::string& piece, int times) {
  std::string line = "{\"text\":\"";
  for (int i = 0; i < times; ++i) line += piece;
  return line + "\"}";
}

std::string nested(int levels) {
  std::string inner = R"({"type":"NFC"})";
  for (int i = 0; i < levels; ++i) inner = R"({"type":"Sequence","normalizers":[)" + inner + "]}";
  return inner;
}

void million_pieces(const Folder& folder) {
  std::string vocab = "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"0\",\"vocab\":{\"0\":0";
  for (int i = 1; i < 3'000'000; ++i)
    vocab += ",\"" + std::to_string(i) + "\":" + std::to_string(i);
  folder.write(file, vocab + "}}}");
}

const std::vector<Case> cases = {
    {"TokenizerEmpty", text(""), encode, 3,
     "@/tokenizer.json: not valid JSON at line 1, column 0: syntax error while parsing value - "
     "unexpected end of input; expected '[', '{', "
     "or a literal",
     hello},
    {"TokenizerCut", [](const Folder& f) { f.model().cut(file, 5000); }, encode, 3,
     "@/tokenizer.json: not valid JSON at line 319, column 9: syntax error while parsing object "
     "key - invalid string: missing closing "
     "quote",
     hello},
    {"TokenizerAList", text("[]"), encode, 3, "@/tokenizer.json: must be an object, found array",
     hello},
    {"TokenizerNotUtf8", text("{\"model\":\"\xff\"}"), encode, 3,
     "@/tokenizer.json: not UTF-8 at line 1, column 10", hello},
    {"TokenizerOf70Megabytes",
     [](const Folder& f) {
       f.repeat(file, "{\"model\":\"", std::string(1024, 'x'), 70 * 1024, "\"}");
     },
     encode, 3, "bytes, at most 67108864 are read", hello},
    {"TokenizerOfManyValues",
     [](const Folder& f) { f.repeat(file, "{\"model\":[0", ",0", 20'000'000, "]}"); }, encode, 3,
     "@/tokenizer.json: not valid JSON at line 1, column 2097163: more than 1048576 values", hello},
    {"TokenizerOfMillionsOfPieces", million_pieces, encode, 3,
     "@/tokenizer.json: not valid JSON at line 1, column 16652219: more than 1048576 values",
     hello},
    {"TokenizerWithoutAModel", text("{}"), encode, 3,
     "@/tokenizer.json: the key \"model\" is missing", hello},
    {"TokenizerOfAnUnknownKind", model(R"("type":"Magic","vocab":{})"), encode, 6,
     "@/tokenizer.json: \"model\": the model \"Magic\" is not supported", hello},
    {"VocabularyAText", bpe("\"abc\"", "[]"), encode, 3,
     "@/tokenizer.json: \"model\": \"vocab\" must be an object of pieces and ids, found string",
     hello},
    {"PieceTwice", bpe(R"({"a":0,"a":1})", "[]"), encode, 3,
     "@/tokenizer.json: not valid JSON at line 1, column 41: the key \"a\" occurs twice in one "
     "object",
     hello},
    {"IdTwice", bpe(R"({"a":0,"b":0})", "[]"), encode, 3,
     "@/tokenizer.json: \"model\": the id 0 is given to two pieces, \"a\" and \"b\"", hello},
    {"IdNegative", bpe(R"({"a":-1})", "[]"), encode, 3,
     "@/tokenizer.json: \"model\": the id of the piece \"a\" must be an integer from 0 to 4194303, "
     "found \"-1\"",
     hello},
    {"IdOfTwoToThe31", bpe(R"({"a":2147483648})", "[]"), encode, 3,
     "@/tokenizer.json: \"model\": the id of the piece \"a\" must be an integer from 0 to 4194303, "
     "found \"2147483648\"",
     hello},
    {"IdAFraction", bpe(R"({"a":0.5})", "[]"), encode, 3,
     "@/tokenizer.json: \"model\": the id of the piece \"a\" must be an integer from 0 to 4194303, "
     "found \"0.5\"",
     hello},
    {"MergesAText", bpe(letters, "\"a b\""), encode, 3,
     "@/tokenizer.json: \"model\": \"merges\" must be an array, found string", hello},
    {"MergeOfAnUnknownPiece", bpe(letters, R"(["a c"])"), encode, 3,
     "@/tokenizer.json: \"model\": merge 0 (\"a\" and \"c\") needs the piece \"c\", which is not "
     "in the vocabulary",
     hello},
    {"MergeIntoNothing", bpe(letters, R"(["b a"])"), encode, 3,
     "@/tokenizer.json: \"model\": merge 0 (\"b\" and \"a\") needs the piece \"ba\", which is not "
     "in the vocabulary",
     hello},
    {"MergeOfThreePieces", bpe(letters, R"(["a b ab"])"), encode, 3,
     "@/tokenizer.json: \"model\": merge 0 must be two pieces with one space between them, found "
     "\"a b ab\"",
     hello},
    {"MergeOfOnePiece", bpe(letters, R"([["a"]])"), encode, 3,
     "@/tokenizer.json: \"model\": merge 0 must be a pair of pieces, found \"[\\\"a\\\"]\"", hello},
    {"MergeOfNumbers", bpe(letters, "[[1,2]]"), encode, 3,
     "@/tokenizer.json: \"model\": merge 0 must be a pair of pieces, found \"[1,2]\"", hello},
    {"UnknownTokenUnknown", model(R"("type":"BPE","unk_token":"<u>","vocab":{"a":0},"merges":[])"),
     encode, 3, "@/tokenizer.json: \"model\": the unknown token \"<u>\" is not in the vocabulary",
     hello},
    {"EncodingAtRandom", model(R"("type":"BPE","dropout":0.5,"vocab":{"a":0},"merges":[])"), encode,
     6, "@/tokenizer.json: \"model\": BPE with dropout 0.5 encodes at random; set it to null",
     hello},
    {"AddedTokensAText", added("\"<s>\""), encode, 3,
     "@/tokenizer.json: \"added_tokens\": must be an array, found string", hello},
    {"AddedTokenAtTheIdOfAPiece", added(R"([{"id":0,"content":"<s>"}])"), encode, 3,
     "@/tokenizer.json: \"added_tokens\": the id 0 of \"<s>\" is that of the piece \"a\"", hello},
    {"AddedTokenFarAway", added(R"([{"id":1000000000000,"content":"<s>"}])"), encode, 3,
     "@/tokenizer.json: \"added_tokens\": the id of the added token \"<s>\" must be from 0 to "
     "4194303, found 1000000000000",
     hello},
    {"AddedTokenTwice", added(R"([{"id":3,"content":"<s>"},{"id":4,"content":"<s>"}])"), encode, 3,
     "@/tokenizer.json: \"added_tokens\": \"<s>\" stands twice", hello},
    {"AddedTokenWithoutText", added(R"([{"id":3}])"), encode, 3,
     "@/tokenizer.json: \"added_tokens\": the key \"content\" (a string) is missing", hello},
    {"NormalizerUnknown", stage("normalizer", R"({"type":"Rot13"})"), encode, 6,
     "@/tokenizer.json: \"normalizer\": the normalizer \"Rot13\" is not supported", hello},
    {"NormalizersNestedDeeply", stage("normalizer", nested(1000)), encode, 3,
     "@/tokenizer.json: not valid JSON at line 1, column 1102: nested deeper than 64 levels",
     hello},
    {"NormalizerOfGarbage",
     stage("normalizer", R"({"type":"Precompiled","precompiled_charsmap":"AAAA////"})"), encode, 3,
     "@/tokenizer.json: \"normalizer\": the character map is 6 bytes long, and says that its trie "
     "has 4278190080",
     hello},
    {"ExpressionNotClosed", splits_by("(a"), encode, 3,
     "@/tokenizer.json: \"pre_tokenizer\": the regular expression \"(a\" cannot be read: missing "
     "closing parenthesis",
     hello},
    {"ExpressionOfAMegabyte", [](const Folder& f) { splits_by(std::string(1 << 20, 'a'))(f); },
     encode, 3,
     "@/tokenizer.json: \"pre_tokenizer\": a regular expression of 1048576 bytes; at most 65536 "
     "are read",
     hello},
    {"ExpressionOfManyBrackets", splits_by(std::string(20000, '(') + std::string(20000, ')')),
     encode, 3,
     "@/tokenizer.json: \"pre_tokenizer\": the regular expression "
     "\"((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((\"...",
     hello},
    {"ExpressionThatBlowsUp", splits_by("(a+)+$"), encode, 0,
     "the tokenizer's regular expression gives up on this text: match limit exceeded",
     R"({"text":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"})"},
    {"ExpressionThatIsQuadratic", splits_by("a*a*a*b"), encode, 0, "{\"ids\":[0]}",
     line_of("a", 200'000)},
    {"ProcessorWithAnUnknownToken",
     stage(
         "post_processor",
         R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}}],"pair":[],"special_tokens":{}})"),
     encode, 3,
     "@/tokenizer.json: \"post_processor\": the template names \"<s>\", which has no ids in "
     "\"special_tokens\"",
     hello},
    {"ProcessorWithAnIdOutside",
     stage(
         "post_processor",
         R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}}],"pair":[],"special_tokens":{"<s>":{"id":"<s>","ids":[4000000000],"tokens":["<s>"]}}})"),
     encode, 3,
     "@/tokenizer.json: \"post_processor\": a token id must be from 0 to 4194303, found "
     "\"4000000000\"",
     hello},
    {"DecoderUnknown", stage("decoder", R"({"type":"Rot13"})"), encode, 6,
     "@/tokenizer.json: \"decoder\": the decoder \"Rot13\" is not supported", hello},
    {"NamesOfTokensCut", [](const Folder& f) { f.model().cut("tokenizer_config.json", 30); },
     encode, 3,
     "@/tokenizer_config.json: not valid JSON at line 3, column 4: syntax error while parsing "
     "object key - invalid string: missing closing "
     "quote",
     hello},
    {"NamesOfTokensAPipe", [](const Folder& f) { f.model().pipe("special_tokens_map.json"); },
     encode, 7, "@/special_tokens_map.json: expected a regular file, found a device or pipe",
     hello},
    {"MegabyteOfOneLetter", [](const Folder& f) { f.model(); }, encode, 0, "{\"ids\":[",
     line_of("a", 1 << 20)},
    {"MegabyteOfSpaces", [](const Folder& f) { f.model(); }, encode, 0, "{\"ids\":[",
     line_of(" ", 1 << 20)},
    {"MegabyteOfAccents", [](const Folder& f) { f.copy("tokenizers/minimind"); }, encode, 0,
     "{\"ids\":[", line_of("\xcc\x81", 1 << 19)},
    {"TextNotUtf8", [](const Folder& f) { f.model(); }, encode, 0,
     "line 1: not UTF-8 at line 1, column 9", "{\"text\":\"\xff\"}"},
    {"TextHalfOfAPair", [](const Folder& f) { f.model(); }, encode, 0,
     "line 1: not valid JSON at line 1, column 16: syntax error while parsing value - invalid "
     "string: surrogate U+D800..U+DBFF must be "
     "followed by",
     R"({"text":"\ud800"})"},
    {"LineAList", [](const Folder& f) { f.model(); }, encode, 0,
     "line 1: expected an object, found array", "[1]"},
    {"LineNestedDeeply", [](const Folder& f) { f.model(); }, encode, 0,
     "line 1: not valid JSON at line 1, column 72: nested deeper than 64 levels",
     "{\"text\":" + std::string(1'000'000, '[')},
    {"LineOf70Megabytes",
     [](const Folder& f) {
       f.model().repeat("lines", "{\"text\":\"", std::string(1024, 'a'), 70 * 1024, "\"}");
     },
     "tokenize --model @ <@/lines", 0, "line 1: longer than 4194304 bytes"},
    {"LineOf5Megabytes",
     [](const Folder& f) {
       f.model().repeat("lines", "{\"text\":\"", std::string(1024, 'a'), 5 * 1024, "\"}");
     },
     "tokenize --model @ <@/lines", 0, "line 1: longer than 4194304 bytes"},
    {"IdOutsideTheVocabulary", [](const Folder& f) { f.model(); }, decode, 0,
     "ids[0]: expected a token id from 0 to 511, found \\\"100000\\\"", R"({"ids":[100000]})"},
    {"IdNotAnInteger", [](const Folder& f) { f.model(); }, decode, 0,
     "ids[0]: expected a token id from 0 to 511, found \\\"1.5\\", R"({"ids":[1.5]})"},
    {"IdOutsideTheModel", [](const Folder& f) { f.model(); }, score_ids, 0,
     "ids[1]: expected a token id from 0 to 511, found \\\"512\\", R"({"ids":[1,512]})"},
};

}  // namespace
}  // namespace tokenizer_files

const std::vector<Case>& tokenizer_cases() {
  return tokenizer_files::cases;
}

}  // namespace troupe::hostile
