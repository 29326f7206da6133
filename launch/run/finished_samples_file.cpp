#include "launch/run/finished_samples_file.h"

#include <algorithm>
#include <memory>
#include <span>

#include "engine/base/text.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "transports/wire/codec.h"

namespace troupe::launch::run {
namespace {

namespace checkpoint = engine::checkpoint;
namespace wire = transports::wire;
using Samples = std::vector<algorithms::FinishedSample>;

std::string name_of_part(std::size_t part) {
  return cat("part-", part);
}

std::span<const std::byte> bytes_of(const wire::WireBody& body, std::string_view name) {
  if (name == "header") return std::as_bytes(std::span(body.header));
  const auto& part = body.parts.at(std::stoull(std::string(name.substr(5))));
  return {part.data, part.size};
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

void write_finished_samples(const std::string& path, const Samples& samples) {
  const auto body = wire::encode(samples, nullptr);
  std::vector<checkpoint::SafetensorsWriter::Plan> plans;
  const auto add = [&](const std::string& name, std::size_t size) {
    plans.push_back({name, checkpoint::StoredType::u8, {static_cast<std::int64_t>(size)}});
  };
  add("header", body.header.size());
  for (std::size_t part = 0; part < body.parts.size(); ++part)
    add(name_of_part(part), body.parts[part].size);
  auto writer = value_or_throw(checkpoint::SafetensorsWriter::create(path, plans));
  const auto tensors = writer.tensors();
  for (const auto& tensor : tensors)
    value_or_throw(writer.write_bytes(tensor.name, bytes_of(body, tensor.name)));
  value_or_throw(writer.finish());
}

Samples read_finished_samples(const std::string& path) {
  const auto file = value_or_throw(checkpoint::SafetensorsFile::open(path));
  wire::WireBody body;
  const auto header = copy_of(file, "header");
  body.header.assign(reinterpret_cast<const char*>(header->data()), header->size());
  for (std::size_t part = 0; part + 1 < file.tensors().size(); ++part) {
    const auto bytes = copy_of(file, name_of_part(part));
    body.parts.push_back({bytes, bytes->data(), bytes->size()});
  }
  try {
    return wire::decode<Samples>(body, path);
  } catch (const Failure& failure) {
    throw Failure({Errc::corrupt, failure.error().what});
  }
}

}  // namespace troupe::launch::run
