// Files that several ranks write, each its part of every tensor: the bytes of the whole tensors.
#include "engine/checkpoint/tensor_parts.h"
#include "engine/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <numeric>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/half.h"
#include "engine/checkpoint/manifest.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/optim/adamw.h"
#include "tests/engine/checkpoint/run_fixture.h"
#include "tests/support/assemble_stored.h"
#include "tests/support/llama_spec.h"
#include "tests/support/sanitized.h"

namespace troupe::engine::checkpoint {
namespace {

using models::HeadOrder;

/// How rank `rank` of `ranks` holds a parameter: rows or columns of it, or a stretch of its values.
enum class Split { rows, columns, values };

struct Parts : testing::Test {
  models::DecoderSpec small(const char* architecture, HeadOrder order) {
    auto spec = test::llama_spec({.vocabulary = 7,
                                  .width = 5,
                                  .layers = 2,
                                  .inner = 4,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_size = 6});
    spec.architecture = architecture;
    spec.head_order = order;
    spec.attention_bias = true;
    return spec;
  }
  void number(const models::DecoderSpec& spec) {
    values.clear();
    float next = 1;
    for (const auto& wanted : models::parameter_list(spec)) {
      auto& all = values[wanted.name];
      all.resize(static_cast<std::size_t>(wanted.shape.count()));
      std::iota(all.begin(), all.end(), next);
      next += 1000;
    }
  }
  std::optional<OwnBlock> block(const models::StoredTensor& layout, const std::string& name,
                                Split split, int rank, int ranks) {
    const auto& all = values.at(name);
    const std::int64_t columns = layout.columns, rows = std::ssize(all) / columns;
    OwnBlock out;
    out.rows = out.written_rows = {0, rows};
    out.columns = out.written_columns = {0, columns};
    if (split == Split::rows) out.rows = parallel::even_range(rows, rank, ranks);
    if (split == Split::columns) out.columns = parallel::even_range(columns, rank, ranks);
    out.written_rows = out.rows;
    out.written_columns = out.columns;
    std::vector<float> mine;
    for (std::int64_t r = out.rows.begin; r < out.rows.end; ++r)
      for (std::int64_t c = out.columns.begin; c < out.columns.end; ++c)
        mine.push_back(all[static_cast<std::size_t>(r * columns + c)]);
    parallel::Range held{0, std::ssize(mine)};
    if (split == Split::values) held = parallel::even_range(held.end, rank, ranks);
    if (held.size() == 0) return std::nullopt;
    const Tensor tensor = ops::from_host(*device, Shape{std::ssize(mine)}, mine);
    // In two stretches, as of two buckets.
    for (const auto half : {0, 1}) {
      const auto part = parallel::even_range(held.size(), half, 2);
      const std::int64_t begin = held.begin + part.begin, end = held.begin + part.end;
      if (begin < end) out.stretches.push_back({begin, end, tensor.flat(begin, end)});
    }
    return out;
  }

  Scratch scratch;
  std::unique_ptr<ops::Device> device = ops::make_reference_device();
  std::map<std::string, std::vector<float>> values;
};

TEST_F(Parts, OfAnyRanksAreTheWholeTensorsOfEveryFamily) {
  int number_of_files = 0;
  for (const char* family : {"LlamaForCausalLM", "Phi3ForCausalLM", "CohereForCausalLM",
                             "BloomForCausalLM", "GPT2LMHeadModel", "InternLM2ForCausalLM"})
    for (const HeadOrder order : {HeadOrder{}, HeadOrder{6, 4, true}})
      for (const Split split : {Split::rows, Split::columns, Split::values})
        for (const StoredType type : {StoredType::f32, StoredType::bf16}) {
          SCOPED_TRACE(cat(family, ", split ", static_cast<int>(split)));
          const auto spec = small(family, order);
          number(spec);
          const auto layouts = models::stored_tensors(spec);
          std::vector<TensorPlan> plans;
          for (const auto& layout : layouts) plans.push_back({layout.name, type, layout.shape()});
          const auto layout_of_file = lay_out(plans);
          const std::string path = scratch / cat(++number_of_files, ".safetensors");
          value_or_throw(write_new_file(path, layout_of_file.header));
          std::int64_t written = 0;
          for (const int rank : {2, 0, 1}) {
            auto file = value_or_throw(OutputFile::join(path));
            PartWriter writer(file, *device, layout_of_file.header.size());
            for (const auto& place : layout_of_file.tensors) {
              const auto& layout =
                  *std::ranges::find(layouts, place.name, &models::StoredTensor::name);
              value_or_throw(writer.write(place, layout, [&](const std::string& parameter) {
                return block(layout, parameter, split, rank, 3);
              }));
            }
            value_or_throw(file.finish());
            written += writer.written();
          }
          EXPECT_EQ(written, static_cast<std::int64_t>(layout_of_file.tensors.back().end));
          const auto file = value_or_throw(SafetensorsFile::open(path));
          for (const auto& layout : layouts) {
            std::vector<float> found(static_cast<std::size_t>(layout.row_count() * layout.columns));
            value_or_throw(file.read_f32(layout.name, found));
            auto expected = test::assemble_stored(
                layout, [&](const std::string& name) { return values.at(name).data(); });
            if (type == StoredType::bf16)
              for (float& value : expected) value = bf16_to_float(float_to_bf16(value));
            ASSERT_EQ(found, expected) << layout.name;
          }
        }
}

TEST_F(Parts, ATensorLargerThanTheBufferIsWrittenInPieces) {
  constexpr std::int64_t columns = PartWriter::buffer_values / 3 + 1, rows = 7;
  for (const bool wide : {false, true}) {
    const std::vector<nn::ParameterSpec> specs{
        {"w.weight", wide ? Shape{2, 2 * PartWriter::buffer_values + 3} : Shape{rows, columns}}};
    const nn::Parameters parameters(*device, specs, false);
    std::vector<float> numbers(static_cast<std::size_t>(parameters.count()));
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    Tensor arena = parameters.values();
    device->upload(arena, numbers);
    const std::string folder = scratch / (wide ? "wide" : "tall");
    std::filesystem::create_directory(folder);
    value_or_throw(save_parameters(folder, parameters, {}));
    const auto file = value_or_throw(SafetensorsFile::open(folder + "/model.safetensors"));
    std::vector<float> found(numbers.size());
    value_or_throw(file.read_f32("w.weight", found));
    EXPECT_TRUE(found == numbers) << wide;
  }
}

TEST_F(Parts, AFileOfAnotherRankThatIsMissingIsNamed) {
  const auto file = OutputFile::join(scratch / "none");
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().what, testing::HasSubstr("share the file system"));
}

/// A line of /proc/self/status, in bytes.
std::int64_t status(std::string_view key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return 1024 * std::stoll(line.substr(key.size() + 1));
  return 0;
}

/// The growth of a process that does nothing else, with 12 MiB of weights, gradients and each
/// moment, while it writes a checkpoint; `overlapped`: and updates the values that are written.
std::int64_t growth_of_a_write(const std::string& output, bool overlapped) {
  const auto device = ops::make_cpu_device({.threads = 1});
  const std::vector<nn::ParameterSpec> specs{{"model.embed_tokens.weight", {2048, 1024}},
                                             {"model.layers.0.mlp.up_proj.weight", {1024, 1024}}};
  nn::Parameters parameters(*device, specs, true);
  device->fill(parameters.values(), 0.5f);
  optim::AdamW optimizer(parameters);
  device->fill(parameters.grads(), 0.5f);
  value_or_throw(optimizer.step(1e-3, {}));
  const auto lock = value_or_throw(DirectoryLock::acquire(output));
  const std::int64_t before = status("VmRSS:");
  auto write = value_or_throw(start_checkpoint(
      nullptr, &lock,
      {1, parameters, {}, optimizer.exp_avg(), optimizer.exp_avg_sq(), Json::Object{}}));
  if (overlapped) {
    optimizer.set_reader(write.get());
    value_or_throw(optimizer.step(1e-3, {}));
  }
  value_or_throw(*write->finish(true));
  check(before > 0, "no resident memory");
  return status("VmHWM:") - before;
}

TEST(CheckpointMemory, GrowsByLessThanOneBucketWhileACheckpointIsWritten) {
  if (test::sanitized) GTEST_SKIP() << "a sanitizer's runtime has memory of its own";
  for (const bool overlapped : {false, true}) {
    const Scratch out;
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        ::_exit(static_cast<int>(growth_of_a_write(out.path(), overlapped) >> 18));
      } catch (const std::exception&) {
        ::_exit(255);
      }
    }
    int ended = 0;
    ASSERT_EQ(::waitpid(child, &ended, 0), child);
    ASSERT_TRUE(WIFEXITED(ended));
    constexpr auto bucket = nn::ArenaShards::bucket_values * sizeof(float);
    EXPECT_LT(WEXITSTATUS(ended), static_cast<int>(bucket >> 18)) << "growth in 256 KiB";
    RecordProperty(overlapped ? "growth_overlapped" : "growth_waiting", WEXITSTATUS(ended));
    EXPECT_TRUE(verify_checkpoint(out / "checkpoint-1"));
  }
}

}  // namespace
}  // namespace troupe::engine::checkpoint
