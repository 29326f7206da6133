// Finished samples of tests, and their file as earlier versions wrote it.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "algorithms/training/weight_versions.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "transports/wire/codec.h"

namespace troupe::launch::finished_samples {

using algorithms::FinishedSample;

inline std::vector<FinishedSample> samples() {
  std::vector<FinishedSample> out;
  for (std::uint64_t i = 0; i < 20; ++i) {
    FinishedSample sample{.batch = static_cast<std::int64_t>(7 + i / 10)};
    auto& c = sample.completion;
    c.sample_id = (std::uint64_t{1} << 63) + i;
    for (std::uint64_t t = 0; t < i; ++t) {
      c.ids.push_back(static_cast<std::int32_t>(1000 * i + t));
      c.logp.push_back(-0.1f * static_cast<float>(t + i));
    }
    c.text = cat("answer ", i, " \xc3\xa4\n");
    c.finish_reason = actors::protocol::FinishReason::stop;
    if (i > 0) c.versions = {{5, 1}};
    if (i > 1) c.versions.push_back({6, static_cast<std::uint32_t>(i - 1)});
    c.updates = 10 + i;
    c.interruptions = 2;
    c.restarts = 1;
    out.push_back(std::move(sample));
  }
  return out;
}

inline void expect_equal(const std::vector<FinishedSample>& found,
                         const std::vector<FinishedSample>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto &a = found[i].completion, &b = expected[i].completion;
    EXPECT_EQ(found[i].batch, expected[i].batch);
    EXPECT_EQ(a.sample_id, b.sample_id);
    EXPECT_EQ(a.ids, b.ids);
    EXPECT_EQ(a.logp, b.logp) << "the same bits";
    EXPECT_EQ(a.text, b.text);
    EXPECT_EQ(a.finish_reason, b.finish_reason);
    EXPECT_EQ(a.versions, b.versions);
    EXPECT_EQ(a.updates, b.updates);
    EXPECT_EQ(a.interruptions, b.interruptions);
    EXPECT_EQ(a.restarts, b.restarts);
  }
}

/// Format 2 of finished_samples_file.h.
inline void write_file(const std::string& path, const std::vector<FinishedSample>& samples) {
  using engine::checkpoint::SafetensorsWriter, engine::checkpoint::StoredType;
  static constexpr std::uint8_t format = 2;
  const auto body = transports::wire::encode(samples, nullptr);
  std::vector<std::pair<std::string, std::span<const std::byte>>> tensors{
      {"format", std::as_bytes(std::span(&format, 1))},
      {"header", std::as_bytes(std::span(body.header))}};
  for (std::size_t part = 0; part < body.parts.size(); ++part)
    tensors.push_back({cat("part-", part), {body.parts[part].data, body.parts[part].size}});
  std::vector<SafetensorsWriter::Plan> plans;
  for (const auto& [name, bytes] : tensors)
    plans.push_back({name, StoredType::u8, {static_cast<std::int64_t>(bytes.size())}});
  auto writer = value_or_throw(SafetensorsWriter::create(path, plans));
  const auto planned = writer.tensors();
  for (const auto& tensor : planned)
    for (const auto& [name, bytes] : tensors)
      if (name == tensor.name) value_or_throw(writer.write_bytes(name, bytes));
  value_or_throw(writer.finish());
}

}  // namespace troupe::launch::finished_samples
