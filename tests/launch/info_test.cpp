// troupe info: every kind of file and folder, and the reason if it cannot be used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "tests/launch/program.h"

namespace troupe::launch::info_test {
namespace {

using engine::checkpoint::SafetensorsFile;
using engine::checkpoint::SafetensorsWriter;
using testing::HasSubstr;

const std::string stories = "models/stories260k/hf";

void copy(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    std::filesystem::copy_file(data(stories) + "/" + name, folder + "/" + name);
}

void write(const std::string& path, const std::string& text) {
  ASSERT_TRUE(write_file_durably(path, text));
}

void copy_model(const std::string& folder) {
  copy(folder, {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"});
}

/// Writes the tensors of stories260k for which `chosen` is true.
void write_shard(const std::string& path, const std::function<bool(std::size_t)>& chosen) {
  const auto whole = value_or_throw(SafetensorsFile::open(data(stories) + "/model.safetensors"));
  std::vector<SafetensorsWriter::Plan> plans;
  for (std::size_t i = 0; i < whole.tensors().size(); ++i) {
    if (chosen(i))
      plans.push_back({whole.tensors()[i].name, whole.tensors()[i].type, whole.tensors()[i].shape});
  }
  auto writer = value_or_throw(SafetensorsWriter::create(path, plans));
  const auto wanted = writer.tensors();
  for (const auto& tensor : wanted)
    ASSERT_TRUE(writer.write_bytes(tensor.name, whole.bytes(*whole.find(tensor.name))));
  ASSERT_TRUE(writer.finish());
}

/// stories260k in two shards with alternating tensors. `change` edits the weight_map of the index.
void make_shards(const std::string& folder, const std::function<void(Json& map)>& change = {},
                 double size_factor = 1) {
  copy(folder, {"config.json", "tokenizer.json"});
  write_shard(folder + "/a.safetensors", [](std::size_t i) { return i % 2 == 0; });
  write_shard(folder + "/b.safetensors", [](std::size_t i) { return i % 2 == 1; });
  const auto whole = value_or_throw(SafetensorsFile::open(data(stories) + "/model.safetensors"));
  Json map = Json::Object{};
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < whole.tensors().size(); ++i) {
    map.set(whole.tensors()[i].name, i % 2 == 0 ? "a.safetensors" : "b.safetensors");
    bytes += static_cast<std::int64_t>(whole.tensors()[i].end - whole.tensors()[i].begin);
  }
  if (change) change(map);
  const Json metadata = Json::Object{
      {"total_size", static_cast<std::int64_t>(static_cast<double>(bytes) * size_factor)}};
  write(folder + "/model.safetensors.index.json",
        Json(Json::Object{{"metadata", metadata}, {"weight_map", map}}).dump());
}

struct Case {
  const char* name;
  std::function<std::string(const std::string& folder)> make;  ///< returns the path to inspect
  int code;
  std::vector<std::string> says;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

/// A folder that `fill` fills.
auto folder_with(std::function<void(const std::string&)> fill) {
  return [fill = std::move(fill)](const std::string& folder) {
    fill(folder);
    return folder;
  };
}
/// The file `name` of a folder that `fill` fills.
auto folder_path_with(std::string name, std::function<void(const std::string&)> fill) {
  return [name = std::move(name), fill = std::move(fill)](const std::string& folder) {
    fill(folder);
    return folder + "/" + name;
  };
}
auto file_with(std::string name, std::string text) {
  return [name = std::move(name), text = std::move(text)](const std::string& folder) {
    write(folder + "/" + name, text);
    return folder + "/" + name;
  };
}

const Case cases[] = {
    {"Model",
     folder_with(copy_model),
     0,
     {"architecture: LlamaForCausalLM", "5 layers of width 64", "260032 parameters", "F32",
      "every weight is present, has its shape and is finite", "memory to serve: 1015.8 KiB",
      "memory to train: 4.0 MiB", "greedy decoding", "512 tokens", "usable: yes"}},
    {"ModelWithoutWeights",
     folder_with([](const std::string& f) { copy(f, {"config.json"}); }),
     4,
     {"expected model.safetensors or model.safetensors.index.json, found neither", "usable: no"}},
    {"WeightsWithoutModel",
     folder_with([](const std::string& f) { copy(f, {"model.safetensors"}); }),
     6,
     {"weights without config.json"}},
    {"UnknownFamily",
     folder_with([](const std::string& f) {
       write(f + "/config.json", R"({"architectures": ["NoSuchModel"]})");
     }),
     6,
     {"NoSuchModel"}},
    {"ConfigAlone",
     folder_path_with("config.json", [](const std::string& f) { copy(f, {"config.json"}); }),
     0,
     {"architecture: LlamaForCausalLM", "260032 parameters", "memory to serve"}},
    {"ConfigOfAnUnknownFamily",
     file_with("config.json", R"({"architectures": ["NoSuchModel"]})"),
     6,
     {"NoSuchModel"}},
    {"OtherModelsWeights",
     folder_with([](const std::string& f) {
       copy(f, {"model.safetensors"});
       auto config = value_or_throw(read_json(data(stories) + "/config.json"));
       config.set("intermediate_size", 180);
       write(f + "/config.json", config.dump());
     }),
     5,
     {"cannot be used"}},
    {"Shards",
     folder_with([](const std::string& f) { make_shards(f); }),
     0,
     {"in 2 files", "usable: yes"}},
    {"MissingShard",
     folder_with([](const std::string& f) {
       make_shards(f);
       std::filesystem::remove(f + "/b.safetensors");
     }),
     4,
     {"b.safetensors", "a shard that"}},
    {"TensorInTheWrongShard",
     folder_with([](const std::string& f) {
       make_shards(f, [](Json& map) { map.object()[1].second = "a.safetensors"; });
     }),
     5,
     {"which", "says is in this file"}},
    {"TensorThatIsNotListed",
     folder_with([](const std::string& f) {
       make_shards(f, [](Json& map) { map.object().erase(map.object().begin()); });
     }),
     5,
     {"is not listed for this file"}},
    {"TotalSizeIsWrong",
     folder_with([](const std::string& f) { make_shards(f, {}, 2); }),
     0,
     {"note: total_size of model.safetensors.index.json is", "usable: yes"}},
    {"OtherModelsTokenizer",
     folder_with([](const std::string& f) {
       copy(f, {"config.json", "model.safetensors"});
       std::filesystem::copy_file(data("tokenizers/gpt2/tokenizer.json"), f + "/tokenizer.json");
     }),
     3,
     {"its largest id is 50256, the model's is 511", "belongs to another model"}},
    {"BrokenTemplate",
     folder_with([](const std::string& f) {
       copy_model(f);
       write(f + "/chat_template.jinja", "{% if %}");
     }),
     3,
     {"chat template", "cannot be used"}},
    {"TemplateThatRendersNoTurn",
     file_with("x.jinja", "{{ raise_exception('never') }}"),
     0,
     {"one user turn does not render", "never"}},
    {"Template",
     file_with("x.jinja", "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"),
     0,
     {"one user turn: \"<user>Hello\""}},
    {"GenerationConfigThatGenerateRefuses",
     folder_with([](const std::string& f) {
       copy(f, {"config.json", "model.safetensors", "tokenizer.json"});
       write(f + "/generation_config.json", R"({"guidance_scale": 2.0})");
     }),
     0,
     {"guidance_scale", "training does not use it", "usable: yes"}},
    {"TokenizerAlone",
     folder_with([](const std::string& f) { copy(f, {"tokenizer.json"}); }),
     0,
     {"tokenizer: ", "512 tokens"}},
    {"TokenizerThatIsNone", file_with("tokenizer.json", "{}"), 3, {"tokenizer.json"}},
    {"Adapter",
     [](const std::string&) { return data("golden/peft/llama-q-v"); },
     0,
     {"LoRA of rank", "which does not exist; give it with --model"}},
    {"Rows",
     file_with(
         "rows.jsonl",
         "{\"prompt\":\"a\",\"completion\":\"b\"}\n{\"prompt\":\"c\",\"completion\":\"d\"}\n"),
     0,
     {"columns: \"prompt\", \"completion\"", "for sft: prompt_completion",
      "not without data.columns: ", "2 rows"}},
    {"MalformedRows",
     file_with("rows.jsonl", "{\"prompt\":\"a\",\"completion\":\"b\"}\nnot json\n"),
     3,
     {"1 malformed rows; the first: ", "rows.jsonl:2"}},
    {"RowsOfNoUse",
     file_with("rows.jsonl", "{\"temperature\": 7}\n"),
     3,
     {"no algorithm reads these rows as they are"}},
    {"RowsOfAnotherKind",
     file_with("rows.jsonl", "{\"question\":\"a\",\"answer\":true,\"passage\":\"p\"}\n"),
     0,
     {"not for sft, as question_answer: ", "rows.jsonl:1: expected text", "found boolean",
      "for grpo: prompt_answer, with an answer"}},
    {"RowsWithUnreadColumns",
     file_with("rows.jsonl",
               "{\"prompt\":\"a\",\"completion\":\"b\",\"id\":1}\n{\"prompt\":\"a\","
               "\"completion\":\"b\",\"id\":2,\"choices\":[1]}\n"),
     0,
     {"unread columns: \"choices\" (1 row), \"id\" (2 rows)"}},
    {"NoRows", file_with("rows.jsonl", "\n"), 3, {"no rows"}},
    {"FolderOfData",
     folder_with([](const std::string& f) {
       write(f + "/1.jsonl", "{\"text\":\"a\"}\n");
       write(f + "/2.jsonl", "{\"text\":\"b\"}\n");
     }),
     0,
     {"2 files", "2 rows"}},
    {"FolderOfTwoLayouts",
     folder_with([](const std::string& f) {
       write(f + "/1.jsonl", "{\"prompt\":\"a\",\"completion\":\"b\"}\n");
       write(f + "/2.jsonl", "{\"prompt\":\"a\",\"completion\":\"b\"}\n");
       write(f + "/3.jsonl", "{\"instruction\":\"a\",\"output\":\"b\"}\n");
     }),
     2,
     {"the files have different layouts: ", "1.jsonl is read sft as prompt_completion",
      "3.jsonl sft as alpaca", "data.mix"}},
    {"PromptsWithAnswers",
     file_with("rows.jsonl", "{\"prompt\":\"a\",\"answer\":1}\n"),
     0,
     {"for grpo: prompt_answer, with an answer for the reward rules"}},
    {"PromptsWithoutAnswers",
     file_with("rows.jsonl", "{\"prompt\":\"a\"}\n{\"prompt\":\"a\",\"answer\":1}\n"),
     0,
     {"for grpo: prompt_answer, without an answer: for reward rules that need none",
      "note: 1 of 2 prompts have no answer, which the reward rules exact_match, gsm8k and boxed "
      "need"}},
    {"Run",
     folder_with(
         [](const std::string& f) { write(f + "/metrics.jsonl", "{\"step\":1}\n{\"step\":2}\n"); }),
     0,
     {"metrics of 2 steps, up to step 2", "newest checkpoint: none"}},
    {"CheckpointWithoutManifest",
     folder_with([](const std::string& f) {
       copy_model(f);
       std::filesystem::create_directory(f + "/training");
     }),
     4,
     {"training checkpoint", "manifest.json"}},
    {"RunFile",
     file_with("run.yaml", "algorithm: sft\ntrain:\n  stepz: 3\n"),
     2,
     {"did you mean train.steps?"}},
    {"PartOfAFolder",
     file_with("generation_config.json", "{}"),
     2,
     {"generation_config.json is only useful with the other files of its folder; inspect the "
      "folder"}},
    {"Pickle", file_with("pytorch_model.bin", "x"), 6, {"pickles (.bin, .pt) are never opened"}},
    {"EmptyFolder", folder_with([](const std::string&) {}), 6, {"neither a model (config.json)"}},
    {"Nothing",
     [](const std::string& f) { return f + "/nowhere"; },
     4,
     {"no such file or folder", "usable: no"}},
};

class InfoTest : public testing::TestWithParam<Case> {};

TEST_P(InfoTest, StatesWhatItIs) {
  const std::string folder = scratch_folder() + "/it";
  std::filesystem::create_directory(folder);
  const std::string path = GetParam().make(folder);
  const ProgramOutput said = run_program("info " + path);
  EXPECT_EQ(said.code, GetParam().code) << said.out << said.err;
  for (const std::string& words : GetParam().says) EXPECT_THAT(said.out, HasSubstr(words));
  EXPECT_THAT(said.out, HasSubstr(GetParam().code == 0 ? "usable: yes" : "usable: no"));
  const ProgramOutput machine = run_program("info --json " + path);
  EXPECT_EQ(machine.code, GetParam().code);
  const auto lines = json_lines(machine.out);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].find("usable")->boolean(), GetParam().code == 0);
  EXPECT_EQ(lines[0].find("exit_code")->integer(), GetParam().code);
  EXPECT_EQ(lines[0].find("problems")->array().empty(), GetParam().code == 0);
}
INSTANTIATE_TEST_SUITE_P(Things, InfoTest, testing::ValuesIn(cases),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Info, GetsTheColumnsOfATableWithoutAHeader) {
  const std::string path = scratch_folder() + "/rows.csv";
  write(path, "2+2=,4\n3+3=,6\n");
  const ProgramOutput said = run_program("info " + path + " --column-names prompt,response");
  EXPECT_EQ(said.code, 0) << said.out << said.err;
  for (const char* words : {"columns: \"prompt\", \"response\"", "2 rows", "for sft: "})
    EXPECT_THAT(said.out, HasSubstr(words));
  EXPECT_THAT(run_program("info " + path).out, HasSubstr("columns: \"2+2=\", \"4\""));
}

TEST(Info, ListsTheDenseModelsAndWhatLoadsThem) {
  const ProgramOutput text = run_program("info --models"),
                      machine = run_program("info --models --json");
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("Baichuan2"));
  const Json rows = json_lines(machine.out).at(0);
  std::vector<std::string> unusable;
  for (const Json& row : rows.array())
    if (!row.find("usable")->boolean()) unusable.push_back(row.find("model")->string());
  EXPECT_EQ(unusable, (std::vector<std::string>{"grok-1"}));
  EXPECT_EQ(rows.array().size(), 42U);
  EXPECT_EQ(run_program("info").code, 2);
}

TEST(Info, CallsThePublishedConfigOfEveryDenseModelUsable) {
  const Json rows = value_or_throw(read_json(data("model_configs") + "/dense_models.json"));
  std::vector<std::string> read;
  const std::string path = scratch_folder() + "/config.json";
  for (const Json& row : rows.array()) {
    read.push_back(row.find("model")->string());
    ASSERT_TRUE(write_file_durably(path, row.find("config")->dump()));
    const ProgramOutput said = run_program("info " + path);
    EXPECT_EQ(said.code, 0) << read.back() << ": " << said.out;
    EXPECT_THAT(said.out, HasSubstr("usable: yes"));
  }
  const Json listed = json_lines(run_program("info --models --json").out).at(0);
  for (const Json& row : listed.array()) {
    if (!row.find("usable")->boolean()) continue;
    EXPECT_THAT(read, testing::Contains(row.find("model")->string()));
  }
}

TEST(InfoJson, HasTheSizesOfAModel) {
  const ProgramOutput said = run_program("info --json " + data(stories));
  const Json all = json_lines(said.out).at(0);
  const Json& model = all.find("things")->array().at(0);
  EXPECT_EQ(model.find("kind")->string(), "model");
  EXPECT_EQ(model.find("parameters")->integer(), 260032);
  EXPECT_EQ(model.find("layers")->integer(), 5);
  EXPECT_EQ(model.find("tied")->boolean(), true);
  EXPECT_EQ(model.find("serve_bytes")->integer(), 4 * 260032);
  EXPECT_EQ(model.find("train_bytes")->integer(), 16 * 260032);
  EXPECT_EQ(model.find("dtypes")->dump(), R"({"F32":47})");
}

}  // namespace
}  // namespace troupe::launch::info_test
