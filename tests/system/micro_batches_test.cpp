// train.micro_batch_tokens changes no byte of the weights and of metrics.jsonl. Continuous
// integration runs a part of the table; tests/long.sh micro_batches runs all of it.
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/random/sha256.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using engine::checkpoint::SafetensorsFile;
using engine::checkpoint::SafetensorsWriter;
using launch::data;

constexpr const char* embedding_name = "model.embed_tokens.weight";

// The tied model with a copy of its embedding as a head of its own.
void write_untied_model(const std::string& folder) {
  const std::string tied = data("models/stories260k/hf");
  std::filesystem::copy(tied, folder);
  std::string config = value_or_throw(read_file(tied + "/config.json"));
  const std::string before = "\"tie_word_embeddings\": true";
  const auto at = config.find(before);
  ASSERT_NE(at, std::string::npos);
  config.replace(at, before.size(), "\"tie_word_embeddings\": false");
  value_or_throw(write_file_durably(folder + "/config.json", config));

  std::filesystem::remove(folder + "/model.safetensors");
  const auto file = value_or_throw(SafetensorsFile::open(tied + "/model.safetensors"));
  std::vector<SafetensorsWriter::Plan> plans;
  for (const auto& tensor : file.tensors()) {
    plans.push_back({tensor.name, tensor.type, tensor.shape});
    if (tensor.name == embedding_name)
      plans.push_back({"lm_head.weight", tensor.type, tensor.shape});
  }
  auto writer = value_or_throw(SafetensorsWriter::create(folder + "/model.safetensors", plans));
  for (const auto& tensor : writer.tensors()) {
    const auto* source = file.find(tensor.name == "lm_head.weight" ? embedding_name : tensor.name);
    ASSERT_NE(source, nullptr) << tensor.name;
    value_or_throw(writer.write_bytes(tensor.name, file.bytes(*source)));
  }
  value_or_throw(writer.finish());
}

struct MicroBatchRow {
  const char *model, *dtype;
  int dp;
  const char* algorithm;
  bool means = false;  ///< of micro-batches of two rows
};
void PrintTo(const MicroBatchRow& row, std::ostream* out) {
  *out << row.model << " " << row.dtype << " dp " << row.dp << " " << row.algorithm
       << (row.means ? " means" : "");
}

class MicroBatchRuns : public SystemRuns, public testing::WithParamInterface<MicroBatchRow> {
 protected:
  std::string arguments_of(int tokens) const {
    const std::string model = GetParam().model, algorithm = GetParam().algorithm;
    std::string more = cat(
        "--set train.steps=3 --set train.save_every=0 --set train.dtype=", GetParam().dtype,
        " --set parallel.dp=", GetParam().dp, " --set train.micro_batch_tokens=", tokens,
        " --set model='", model == "untied" ? path("untied") : data("models/stories260k/hf"), "'");
    if (model == "lora") more += " --set lora.rank=4";
    if (GetParam().means)
      more += " --set train.loss_average=micro_batches --set train.micro_batch_rows=2";
    if (algorithm == "sft") more += " --set train.batch_size=24 --set train.max_length=256";
    if (algorithm == "dpo") more += " --set train.batch_size=8 --set train.max_length=192";
    if (algorithm == "grpo")
      more += cat(" --set train.batch_size=8 --set train.max_length=256 --set data.path='",
                  data("datasets/math/gsm8k_train_head.jsonl"),
                  "' --set 'reward=[{rule: length, max: 200, buffer: 200}]'");
    return arguments(algorithm, cat("tokens", tokens), more);
  }
  // Hashes of the weights and of the metrics.
  std::vector<std::string> hashes(int tokens) const {
    const std::string folder = path(cat("tokens", tokens)),
                      file = std::string(GetParam().model) == "lora" ? "adapter_model.safetensors"
                                                                     : "model.safetensors";
    return {value_or_throw(sha256_of_file(folder + "/latest/" + file)),
            value_or_throw(sha256_of_file(folder + "/metrics.jsonl"))};
  }
};

TEST_P(MicroBatchRuns, GiveTheBytesOfWholeBatches) {
  if (std::string(GetParam().model) == "untied") write_untied_model(path("untied"));
  run(arguments_of(8192));
  const auto norms = value_or_throw(read_file(path("tokens8192/metrics.jsonl")));
  EXPECT_EQ(norms.find("\"grad_norm\":0.0,"), std::string::npos) << "this run shows nothing";
  for (const int tokens : {512, 1024, 2048}) {
    run(arguments_of(tokens));
    EXPECT_EQ(hashes(tokens), hashes(8192)) << tokens << " tokens";
  }
}

std::vector<MicroBatchRow> micro_batch_table() {
  std::vector<MicroBatchRow> rows;
  for (const char* model : {"tied", "untied", "lora"})
    for (const char* dtype : {"f32", "bf16"})
      for (const int dp : {1, 2})
        for (const char* algorithm : {"sft", "dpo", "grpo"})
          rows.push_back({model, dtype, dp, algorithm});
  for (const int dp : {1, 2}) rows.push_back({"untied", "bf16", dp, "sft", true});
  return rows;
}
std::string title_of_row(const testing::TestParamInfo<MicroBatchRow>& info) {
  const MicroBatchRow& row = info.param;
  return cat(row.model, "_", row.dtype, "_dp", row.dp, "_", row.algorithm,
             row.means ? "_means" : "");
}

INSTANTIATE_TEST_SUITE_P(Some, MicroBatchRuns,
                         testing::Values(MicroBatchRow{"tied", "f32", 1, "sft"},
                                         MicroBatchRow{"tied", "bf16", 2, "dpo"},
                                         MicroBatchRow{"tied", "f32", 1, "grpo"},
                                         MicroBatchRow{"untied", "bf16", 1, "dpo"},
                                         MicroBatchRow{"lora", "f32", 2, "sft"},
                                         MicroBatchRow{"tied", "f32", 2, "sft", true},
                                         MicroBatchRow{"lora", "bf16", 1, "grpo"}),
                         title_of_row);
INSTANTIATE_TEST_SUITE_P(DISABLED_All, MicroBatchRuns, testing::ValuesIn(micro_batch_table()),
                         title_of_row);

}  // namespace
}  // namespace troupe::test
