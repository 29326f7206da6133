// Any bytes as a file of torch.save: refused, or every tensor is read or has a wrong checksum.
#include <cstdint>
#include <cstdlib>

#include "engine/checkpoint/pickle/torch_file.h"
#include "tests/fuzz/scratch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::engine::checkpoint;  // NOLINT: a program of one page
  static const troupe::fuzz::ScratchFolder folder;
  const auto path = folder.write("x.pt", troupe::fuzz::text_of(data, size));
  const auto file = TorchFile::open(path);
  if (!file) return 0;
  std::vector<std::byte> buffer;
  for (const PickledTensor& tensor : file->graph().tensors) {
    const auto bytes = file->bytes(tensor, buffer);
    if (bytes &&
        bytes->size() != static_cast<std::size_t>(tensor.count()) * bits_of(tensor.type) / 8)
      std::abort();
  }
  return 0;
}
