// The published layouts of data sets (tests/data/layouts): `troupe explain --examples` shows the
// texts that TRL, LLaMA-Factory or verl read from them, with the same roles, and what is trained
// on.
#include <gmock/gmock.h>

#include <filesystem>
#include <optional>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/launch/program.h"

namespace troupe::launch::layouts_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A model folder with the tokenizer of Mistral 7B, which has one token for Math-Shepherd's
/// placeholder. explain needs no weights.
std::string model_folder() {
  namespace fs = std::filesystem;
  const std::string folder = scratch_folder() + "/model";
  fs::create_directories(folder);
  for (const auto& file : fs::directory_iterator(data("tokenizers/mistral-7b")))
    fs::copy_file(file.path(), fs::path(folder) / file.path().filename());
  EXPECT_TRUE(write_file_durably(
      folder + "/config.json",
      R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8,
      "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "rms_norm_eps":
      1e-5, "vocab_size": 32000, "max_position_embeddings": 4096, "bos_token_id": 1,
      "eos_token_id": 2, "hidden_act": "silu", "tie_word_embeddings": true})"));
  return folder;
}

/// What the program shows of the rows of a layout, one object an example; nullopt: the program is
/// built without Arrow and cannot read the file.
std::optional<std::vector<Json>> shown(const Json& layout, const std::string& folder) {
  const std::string name = layout.find("name")->string();
  const Json* file = layout.find("file");
  std::string command =
      cat("explain --examples 100 --algorithm ", layout.find("algorithm")->string(), " --model ",
          folder, " --data ", data("layouts/" + (file ? file->string() : name + ".jsonl")),
          " --output ", folder, "/x --set rollout.max_new_tokens=64 --set chat_template=",
          data("chat_templates/qwen2.5-training.jinja"));
  for (const Json& set : layout.find("set")->array()) command += cat(" --set '", set.string(), "'");
  const ProgramOutput said = run_program(command);
  if (file && said.err.find("cmake/fetch_arrow.sh") != said.err.npos) return std::nullopt;
  EXPECT_EQ(said.code, 0) << name << ": " << said.err;
  return json_lines(said.out);
}

/// The sequences of all examples: a pair of KTO's is two examples, each with one.
Json::Array sequences_of(const std::vector<Json>& examples) {
  Json::Array out;
  for (const Json& example : examples)
    for (const Json& sequence : example.find("sequences")->array()) out.push_back(sequence);
  return out;
}

Json without_ids(const Json& tool_calls) {
  Json::Array out;
  for (const Json& entry : tool_calls.array()) {
    Json call;
    for (const auto& [name, value] : entry.object())
      if (name != "id") call.set(name, value);
    out.push_back(std::move(call));
  }
  return Json(std::move(out));
}

/// The members of a part that the expected files have.
Json comparable(const Json& part) {
  Json out;
  for (const char* name : {"role", "text", "trained", "tool_calls", "label"})
    if (const Json* found = part.find(name))
      out.set(name, std::string_view(name) == "tool_calls" ? without_ids(*found) : *found);
  return out;
}

std::string text_at(const Json& part) {
  const std::string& text = part.find("text")->string();
  const auto begin = text.find_first_not_of(" \n"), end = text.find_last_not_of(" \n");
  return begin == text.npos ? "" : text.substr(begin, end + 1 - begin);
}

/// The texts of the parts stand in this order in what the model reads, and those that are trained
/// on in what is marked so.
void expect_parts_within(const Json& sequence, const std::string& name) {
  std::string whole, trained;
  for (const Json& run : sequence.find("runs")->array()) {
    whole += run.find("text")->string();
    if (run.find("trained")->boolean()) trained += run.find("text")->string();
  }
  std::size_t at = 0, trained_at = 0;
  for (const Json& part : sequence.find("parts")->array()) {
    const std::string text = text_at(part);
    const auto found = whole.find(text, at);
    ASSERT_NE(found, whole.npos) << name << ": " << text << " is not in " << whole;
    at = found + text.size();
    const bool in_marks = part.find("trained")->boolean() && !part.find("label");
    if (!in_marks) continue;
    const auto marked = trained.find(text, trained_at);
    ASSERT_NE(marked, trained.npos) << name << ": " << text << " is not in " << trained;
    trained_at = marked + text.size();
  }
}

void expect_tokens(const Json& sequence, const Json& wanted, const std::string& name) {
  Json::Array ids, trained;
  for (const Json& run : sequence.find("runs")->array())
    for (const Json& id : run.find("ids")->array()) {
      ids.push_back(id);
      trained.push_back(*run.find("trained"));
    }
  EXPECT_EQ(Json(ids).dump(), wanted.find("ids")->dump()) << name;
  EXPECT_EQ(Json(trained).dump(), wanted.find("trained")->dump()) << name;
}

void expect_sequence(const Json& sequence, const Json& wanted, const std::string& name) {
  if (const Json* title = wanted.find("name")) {
    ASSERT_NE(sequence.find("name"), nullptr) << name;
    EXPECT_EQ(sequence.find("name")->string(), title->string()) << name;
  }
  if (wanted.find("ids")) return expect_tokens(sequence, wanted, name);
  Json::Array parts, expected;
  ASSERT_NE(sequence.find("parts"), nullptr) << name;
  for (const Json& part : sequence.find("parts")->array()) parts.push_back(comparable(part));
  for (const Json& part : wanted.find("parts")->array()) expected.push_back(comparable(part));
  EXPECT_EQ(Json(parts).dump(), Json(expected).dump()) << name;
  expect_parts_within(sequence, name);
}

/// Members of an example beside its sequences.
void expect_members(const std::vector<Json>& examples, const Json::Array& wanted,
                    const std::string& name) {
  if (examples.size() != wanted.size()) return;  // KTO's pairs
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (const char* member : {"tools", "answer"}) {
      const Json *found = examples[i].find(member), *other = wanted[i].find(member);
      EXPECT_EQ(found ? found->dump() : "none", other ? other->dump() : "none")
          << name << ", row " << i << ": " << member;
    }
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (const Json* classes = wanted[i].find("classes")) {
      EXPECT_EQ(examples[i].find("classes")->dump(), classes->dump()) << name;
    }
}

TEST(Layouts, AreReadAsTheirToolsReadThem) {
  const std::string folder = model_folder();
  const Json layouts = value_or_throw(read_json(data("layouts/layouts.json")));
  EXPECT_GE(layouts.array().size(), 30u);
  for (const Json& layout : layouts.array()) {
    const std::string name = layout.find("name")->string();
    const Json file = value_or_throw(read_json(data(cat("layouts/", name, ".expected.json"))));
    const Json::Array& wanted = file.find("rows")->array();
    const auto examples = shown(layout, folder);
    if (!examples) continue;
    const Json::Array sequences = sequences_of(*examples),
                      expected = sequences_of({wanted.begin(), wanted.end()});
    EXPECT_EQ(sequences.size(), expected.size()) << name;
    if (sequences.size() != expected.size()) continue;
    for (std::size_t i = 0; i < expected.size(); ++i)
      expect_sequence(sequences[i], expected[i], name);
    expect_members(*examples, wanted, name);
  }
}

}  // namespace
}  // namespace troupe::launch::layouts_test
