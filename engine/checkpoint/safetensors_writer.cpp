#include "engine/checkpoint/safetensors_writer.h"

#include <algorithm>

#include "engine/base/errors/check.h"

namespace troupe::engine::checkpoint {

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path,
                                                    const std::vector<Plan>& plans,
                                                    const Metadata& metadata) {
  auto layout = lay_out(plans, metadata);
  auto file = OutputFile::create(path);
  RETURN_IF_ERROR(file);
  RETURN_IF_ERROR(file->write(layout.header));
  return SafetensorsWriter(std::move(*file), std::move(layout.tensors));
}

const StoredTensor& SafetensorsWriter::next(std::string_view name) {
  check(written_ < tensors_.size() && tensors_[written_].name == name,
        "SafetensorsWriter: tensors must be written in the order of tensors()");
  return tensors_[written_++];
}

Result<> SafetensorsWriter::write_bytes(std::string_view name, std::span<const std::byte> bytes) {
  const StoredTensor& tensor = next(name);
  check(bytes.size() == tensor.end - tensor.begin, "SafetensorsWriter: bytes of another size");
  return file_.write(bytes);
}

Result<> SafetensorsWriter::write(std::string_view name, std::span<const float> values) {
  const StoredTensor& tensor = next(name);
  check(values.size() == static_cast<std::size_t>(tensor.count()),
        "SafetensorsWriter: values of another size");
  constexpr std::size_t at_once = std::size_t{1} << 20;
  std::vector<std::uint16_t> halves;
  while (!values.empty()) {
    const auto part = values.first(std::min(values.size(), at_once));
    RETURN_IF_ERROR(file_.write(stored_bytes(tensor.type, part, halves)));
    values = values.subspan(part.size());
  }
  return {};
}

Result<> SafetensorsWriter::finish() {
  check(written_ == tensors_.size(), "SafetensorsWriter: finished before every tensor was written");
  return file_.finish();
}

}  // namespace troupe::engine::checkpoint
