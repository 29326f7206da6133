#include "launch/run/finished_samples_file.h"

#include <algorithm>
#include <memory>

#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors.h"
#include "transports/wire/codec.h"

namespace troupe::launch::run {
namespace {

namespace checkpoint = engine::checkpoint;
namespace wire = transports::wire;
using Samples = std::vector<algorithms::FinishedSample>;

constexpr std::uint8_t format = 2;
constexpr const char* format_name = "format";

struct CompletionOfFormat1 {
  actors::protocol::Completion of;
};
auto fields(CompletionOfFormat1& c) {
  return std::tie(c.of.sample_id, c.of.ids, c.of.logp, c.of.text, c.of.finish_reason, c.of.versions,
                  c.of.updates, c.of.interruptions, c.of.restarts, c.of.reward, c.of.sampled);
}
struct SampleOfFormat1 {
  std::int64_t batch = 0;
  CompletionOfFormat1 completion;
};
auto fields(SampleOfFormat1& s) {
  return std::tie(s.batch, s.completion);
}

std::string name_of_part(std::size_t part) {
  return cat("part-", part);
}

std::shared_ptr<std::vector<std::byte>> copy_of(const checkpoint::SafetensorsFile& file,
                                                const std::string& name) {
  const auto* tensor = file.find(name);
  if (!tensor || tensor->type != checkpoint::StoredType::u8)
    throw Failure({Errc::corrupt, cat(file.path(), ": expected a tensor ", name, " of type ",
                                      to_string(checkpoint::StoredType::u8), ", found ",
                                      tensor ? to_string(tensor->type) : "none")});
  const auto bytes = file.bytes(*tensor);
  return std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
}

}  // namespace

Samples read_finished_samples(const std::string& path) {
  const auto file = value_or_throw(checkpoint::SafetensorsFile::open(path));
  const bool first = file.find(format_name) == nullptr;
  if (!first)
    if (const auto found = copy_of(file, format_name);
        found->size() != 1 || found->front() != std::byte{format})
      throw Failure({Errc::unsupported, cat(path, ": expected format 1 or ", int{format},
                                            " of finished samples, found another; resume with the "
                                            "version that wrote it")});
  wire::WireBody body;
  const auto header = copy_of(file, "header");
  body.header.assign(reinterpret_cast<const char*>(header->data()), header->size());
  const std::size_t parts = file.tensors().size() - (first ? 1 : 2);
  for (std::size_t part = 0; part < parts; ++part) {
    const auto bytes = copy_of(file, name_of_part(part));
    body.parts.push_back({bytes, bytes->data(), bytes->size()});
  }
  try {
    if (!first) return wire::decode<Samples>(body, path);
    Samples samples;
    for (auto& each : wire::decode<std::vector<SampleOfFormat1>>(body, path))
      samples.push_back({each.batch, std::move(each.completion.of)});
    return samples;
  } catch (const Failure& failure) {
    throw Failure({Errc::corrupt, failure.error().what});
  }
}

}  // namespace troupe::launch::run
