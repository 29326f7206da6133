// Any bytes as a safetensors file: refused with a reason, or every tensor lies inside the file and
// can be read, or says why not. Input: the file.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "tests/fuzz/scratch_file.h"

namespace {

using namespace troupe;              // NOLINT: a program of one page
using namespace engine::checkpoint;  // NOLINT

template <class T, class Read>
void read_as(const StoredTensor& tensor, Read read) {
  std::vector<T> values(static_cast<std::size_t>(tensor.count()));
  const auto done = read(values);
  if (!done && done.error().code != Errc::unsupported) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::ScratchFolder folder;
  const auto header = parse_safetensors_header(std::as_bytes(std::span(data, size)), "fuzz");
  if (!header) return 0;
  const auto file =
      SafetensorsFile::open(folder.write("model.safetensors", fuzz::text_of(data, size)));
  if (!file || file->tensors().size() != header->tensors.size()) std::abort();
  for (const StoredTensor& tensor : file->tensors()) {
    if (tensor.end < tensor.begin || header->data_begin + tensor.end > size ||
        file->find(tensor.name) == nullptr)
      std::abort();
    read_as<float>(tensor,
                   [&](std::vector<float>& into) { return file->read_f32(tensor.name, into); });
    read_as<double>(tensor,
                    [&](std::vector<double>& into) { return file->read_f64(tensor.name, into); });
    read_as<std::int64_t>(
        tensor, [&](std::vector<std::int64_t>& into) { return file->read_i64(tensor.name, into); });
    read_as<std::int32_t>(
        tensor, [&](std::vector<std::int32_t>& into) { return file->read_i32(tensor.name, into); });
  }
  return 0;
}
