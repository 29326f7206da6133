// Small inputs from which much time, much text or many outputs would follow.
#include <filesystem>
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace growth {
namespace {

constexpr const char* encode = "tokenize --model @";
constexpr const char* decode = "tokenize --decode --model @";
constexpr const char* draw = "generate --model @";
constexpr const char* train =
    "train --algorithm sft --set model=@ --set data.path=@/rows.jsonl --set output=@/out --set "
    "train.steps=1";

const std::string word_level = R"("model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0}})";

auto tokenizer(const std::string& members) {
  return [members](const Folder& folder) {
    folder.write("tokenizer.json", "{" + members + "," + word_level + "}");
  };
}

std::string times(const std::string& piece, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += piece;
  return out;
}
// The case with this line of input.
Case line_of(Case given, const std::string& piece, int count) {
  given.long_input = [piece, count] { return "{\"text\":\"" + times(piece, count) + "\"}"; };
  return given;
}
// The stage `piece` `count` times, as a sequence of `list`.
std::string sequence(const std::string& stage, const std::string& list, const std::string& piece,
                     int count) {
  std::string items = piece;
  for (int i = 1; i < count; ++i) items += "," + piece;
  return "\"" + stage + "\":{\"type\":\"Sequence\",\"" + list + "\":[" + items + "]}";
}

const std::string multiply =
    R"({"type":"Replace","pattern":{"String":"a"},"content":"aaaaaaaaaaaaaaaa"})";
const std::string marks = "\u0300\u0316";  // of two classes, in the wrong order

std::string normalizer(const std::string& type) {
  return "\"normalizer\":{\"type\":\"" + type + "\"}";
}
Case marked(const std::string& type) {
  return line_of(
      {"AMegabyteOfMarksFor" + type, tokenizer(normalizer(type)), encode, 0, R"({"ids":[0]})"},
      marks, 250'000);
}

auto split_by(const std::string& regex) {
  return tokenizer(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":")" + regex +
                   R"("},"behavior":"Isolated","invert":false})");
}

// A file of four terabytes, of which `head` is written.
auto sparse(const std::string& name, const std::string& head) {
  return [name, head](const Folder& folder) {
    folder.model().write(name, head);
    std::filesystem::resize_file(folder.path() + "/" + name, std::uintmax_t{4} << 40);
  };
}

auto model() {
  return [](const Folder& folder) { folder.model(); };
}
auto generation_config(const std::string& key, Json value) {
  return [key, value](const Folder& folder) {
    folder.model().write("generation_config.json", "{}").set("generation_config.json", key, value);
  };
}
std::string asking(const std::string& members) {
  return R"({"ids":[1],"max_new_tokens":1,)" + members + "}";
}

const std::vector<Case> cases = {
    marked("NFC"),
    marked("NFD"),
    marked("NFKC"),
    marked("NFKD"),
    line_of({"AMegabyteOfMarksForBert",
             tokenizer(R"("normalizer":{"type":"BertNormalizer","clean_text":true,)"
                       R"("handle_chinese_chars":true,"strip_accents":true,"lowercase":true})"),
             encode, 0, R"({"ids":[]})"},
            marks, 250'000),
    line_of({"AMegabyteOfMarksOfCompatibility", tokenizer(normalizer("NFKC")), encode, 0,
             R"({"ids":[0]})"},
            "\uFF9E\u0300\u0F73", 110'000),
    {"ARowOfAMegabyteOfMarks",
     [](const Folder& folder) {
       folder.model()
           .edit("tokenizer.json",
                 [](Json& json) {
                   json.set("normalizer", Json(Json::Object{{"type", "NFC"}}));
                 })
           .repeat("rows.jsonl", R"({"prompt":"a","response":")", marks, 250'000, "\"}\n");
     },
     train, 0, "1 of them truncated to train.max_length"},
    line_of({"ReplacesThatMultiply", tokenizer(sequence("normalizer", "normalizers", multiply, 10)),
             encode, 0, "the tokenizer's normalizer makes more than 65864 bytes of this text"},
            "a", 41),
    line_of({"ReplaceOfNothing",
             tokenizer(R"("normalizer":{"type":"Replace","pattern":{"Regex":""},"content":")" +
                       times("x", 1000) + "\"}"),
             encode, 0, "the tokenizer's normalizer makes more than"},
            "b", 3'900'000),
    line_of({"ReplacesBetweenTokens",
             tokenizer(
                 sequence("normalizer", "normalizers", multiply, 4) +
                 R"(,"added_tokens":[{"id":1,"content":"<s>","special":true,"normalized":false}])"),
             encode, 0, "the tokenizer's normalizer makes more than"},
            "a<s>", 100'000),
    line_of(
        {"PrependOfAMegabyte",
         tokenizer(R"("normalizer":{"type":"Prepend","prepend":")" + times("x", 1'000'000) + "\"}"),
         encode, 0, "the tokenizer's normalizer makes more than"},
        "a", 10),
    line_of({"CompatibilityOfLigatures", tokenizer(normalizer("NFKC")), encode, 0,
             "the tokenizer's normalizer makes more than"},
            "\uFDFA", 1'000'000),
    line_of({"ByteLevelsInByteLevels",
             tokenizer(sequence(
                 "pre_tokenizer", "pretokenizers",
                 R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})", 12)),
             encode, 0, "the tokenizer's pre-tokenizer makes more than"},
            "\u00e9", 500'000),
    {"DecodersThatMultiply", tokenizer(sequence("decoder", "decoders", multiply, 10)), decode, 0,
     "the tokenizer's decoder makes more than", R"({"ids":[0,0,0,0,0,0,0,0]})"},
    line_of({"RegexWithAReference", split_by(R"((?=(a+))\\1*[bc])"), encode, 6,
             "uses a reference to a group, which troupe does not translate"},
            "a", 200'000),
    line_of({"RegexThatRepeatsRepeats", split_by("(a{1,1000}){1,1000}b"), encode, 0,
             "the tokenizer's regular expression gives up on this text"},
            "a", 1'000'000),
    line_of({"RegexOnManyWords",
             tokenizer(R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[)"
                       R"({"type":"FixedLength","length":22},{"type":"Split","pattern":{"Regex":)"
                       R"("(?:a|b|a){1,16}[cd]"},"behavior":"Isolated","invert":false}]})"),
             encode, 0, "the tokenizer's regular expression gives up on this text"},
            "a", 600'000),
    {"ALineOfFourTerabytes", sparse("rows.jsonl", R"({"prompt":"a)"), train, 5,
     "@/rows.jsonl:1: expected a row of at most 8 MiB, found a line that does not end within "
     "256 "
     "MiB"},
    {"ATextOfFourTerabytes", sparse("rows.txt", "once"),
     "train --algorithm sft --set model=@ --set data.path=@/rows.txt --set output=@/out --set "
     "train.steps=1",
     5,
     "@/rows.txt:1: expected a row of at most 8 MiB, found a line that does not end within 256 "
     "MiB"},
    {"BillionsOfOutputsInAFile", generation_config("num_return_sequences", 2147483647), draw, 3,
     "num_return_sequences is 2147483647; allowed: 1 to 4096", asking(R"("seed":1)")},
    {"BillionsOfOutputsInALine", model(), draw, 0,
     "num_return_sequences is 2147483647; allowed: 1 to 4096",
     asking(R"("num_return_sequences":2147483647)")},
    {"ManyOutputsOfManyTokens", model(), draw, 0,
     "num_return_sequences is 4096 and max_new_tokens is 1000000; allowed: at most 67108864 "
     "tokens",
     R"({"ids":[1],"max_new_tokens":1000000,"num_return_sequences":4096})"},
    {"OutputsByOption", model(), std::string(draw) + " --n 65536", 2,
     "--n: Value 65536 not in range 1 to 4096", asking(R"("seed":1)")},
    {"LengthOfALineBeyondTheModel", model(), draw, 0,
     "max_length is read from generation_config.json only; for one prompt use max_new_tokens",
     asking(R"("max_length":9223372036854775807)")},
    {"LeastLengthOfALine", model(), draw, 0,
     "min_length is read from generation_config.json only; for one prompt use min_new_tokens",
     asking(R"("min_length":9223372036854775807)")},
    {"BeamGroupsOfALine", model(), draw, 0,
     "num_beam_groups is 9223372036854775807; troupe does not support it",
     asking(R"("num_beam_groups":9223372036854775807)")},
    {"EndTokensOfALine", model(), draw, 0,
     "eos_token_id is read from generation_config.json only; for one prompt use stop_token_ids",
     asking(R"("eos_token_id":[-1,99999999999])")},
};

}  // namespace
}  // namespace growth

const std::vector<Case>& growth_cases() {
  return growth::cases;
}

}  // namespace troupe::hostile
