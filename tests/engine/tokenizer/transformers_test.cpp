// transformers' AutoTokenizer reads the folders that troupe reads (and copies, file by file, when
// it saves a model) with the same ids. Runs where python3, or $TROUPE_PYTHON, has transformers.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/engine/tokenizer/test_data.h"

namespace troupe::engine::tokenizer {
namespace {

constexpr const char* program = R"(
import json, sys
try:
    from transformers import AutoTokenizer
except ImportError:
    print("null")
    sys.exit()
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
print(json.dumps([tokenizer(text)["input_ids"] for text in json.load(open(sys.argv[2], encoding="utf-8"))]))
)";

/// The program's output; null if transformers is not installed.
Json ids_by_transformers(const std::string& folder) {
  const char* python = std::getenv("TROUPE_PYTHON");
  const std::string command =
      cat("HF_HUB_OFFLINE=1 '", python ? python : "python3", "' -c '", program, "' '", folder,
          "' '", data, "/expected/encodings/texts.json' 2>/dev/null");
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  while (pipe && std::fgets(buffer, sizeof buffer, pipe)) out += buffer;
  if (!pipe || ::pclose(pipe) != 0 || out.empty()) return Json();
  return value_or_throw(parse_json(out, "the program's output"));
}

class AutoTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(AutoTokenizer, GivesTheSameIds) {
  const std::string folder = data + "/" + GetParam();
  const Json theirs = ids_by_transformers(folder);
  if (!theirs.is_array()) GTEST_SKIP() << "python3 (or $TROUPE_PYTHON) has no transformers here";
  const Tokenizer tokenizer = value_or_throw(Tokenizer::load(folder, TokenizerIds::transformers5));
  const Json texts = value_or_throw(read_json(data + "/expected/encodings/texts.json"));
  ASSERT_EQ(theirs.array().size(), texts.array().size());
  for (std::size_t i = 0; i < texts.array().size(); ++i) {
    const std::string& text = texts.array()[i].string();
    std::vector<TokenId> ids;
    for (const Json& id : theirs.array()[i].array())
      ids.push_back(static_cast<TokenId>(id.integer()));
    EXPECT_EQ(tokenizer.encode(text, true), ids) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, AutoTokenizer,
                         testing::Values("tokenizers/qwen2.5", "tokenizers/minimind",
                                         "tokenizers/gpt2", "tokenizers/mistral-7b",
                                         "models/stories260k/hf", "models/tinystories-656k"),
                         [](const auto& chosen) {
                           std::string name;
                           for (const char c : std::string(chosen.param))
                             name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace troupe::engine::tokenizer
