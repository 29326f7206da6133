#include "engine/checkpoint/pickle/torch_writer.h"

#include "engine/base/errors/check.h"

namespace troupe::engine::checkpoint {
namespace {

// torch uses the file's name; a fixed one keeps the bytes independent of it.
const std::string archive_folder = "archive/";

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

Result<TorchWriter> TorchWriter::create(const std::string& path, const PickleValue& root) {
  WrittenPickle pickle = write_pickle(root);
  auto zip = ZipWriter::create(path);
  RETURN_IF_ERROR(zip);
  RETURN_IF_ERROR(zip->add(archive_folder + "data.pkl", bytes_of_text(pickle.bytes)));
  return TorchWriter(std::move(*zip), std::move(pickle.tensors));
}

/// Writes the next tensors that have a content.
Result<> TorchWriter::write_contents() {
  for (; written_ < tensors_.size() && !tensors_[written_].content.empty(); ++written_)
    RETURN_IF_ERROR(
        zip_.add(archive_folder + "data/" + std::to_string(written_), tensors_[written_].content));
  return {};
}

Result<> TorchWriter::write(std::span<const std::byte> bytes) {
  RETURN_IF_ERROR(write_contents());
  check(written_ < tensors_.size() && bytes.size() == tensors_[written_].bytes(),
        "TorchWriter: a tensor of another size");
  return zip_.add(archive_folder + "data/" + std::to_string(written_++), bytes);
}

Result<> TorchWriter::finish() {
  RETURN_IF_ERROR(write_contents());
  check(written_ == tensors_.size(), "TorchWriter: not every tensor was written");
  RETURN_IF_ERROR(zip_.add(archive_folder + "version", bytes_of_text("3\n")));
  return zip_.finish();
}

}  // namespace troupe::engine::checkpoint
