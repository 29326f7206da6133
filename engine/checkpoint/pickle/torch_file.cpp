#include "engine/checkpoint/pickle/torch_file.h"

#include <cstdint>
#include <cstring>

#include "engine/base/text/text.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::string_view pickle_name = "data.pkl";

std::size_t element_bytes(const PickledTensor& tensor) {
  return bits_of(tensor.type) / 8;
}

/// Before torch 1.6: pickles end to end, the first of which is the integer 0x1950a86a20f9469cfc6c.
Result<> check_not_legacy(const std::string& path) {
  constexpr std::string_view magic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  const auto file = MappedFile::open(path);
  RETURN_IF_ERROR(file);
  const auto bytes = file->bytes();
  if (bytes.size() < magic.size() || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    return {};
  return fail(Errc::unsupported,
              cat(path,
                  ": expected a zip archive, as torch.save writes it since torch 1.6; found "
                  "the format before it. If you trust its source, rewrite it: python3 -c "
                  "\"import torch; torch.save(torch.load('FILE', map_location='cpu'), "
                  "'NEW')\""));
}

/// Copies elements from a strided view into row-major order.
void gather(std::span<const std::byte> storage, const PickledTensor& tensor,
            std::span<std::byte> into) {
  const std::size_t size = element_bytes(tensor), axes = tensor.shape.size();
  std::vector<std::int64_t> index(axes, 0);
  for (std::size_t at = 0; at < into.size(); at += size) {
    std::int64_t from = tensor.offset;
    for (std::size_t i = 0; i < axes; ++i) from += index[i] * tensor.strides[i];
    std::memcpy(into.data() + at, storage.data() + static_cast<std::size_t>(from) * size, size);
    for (std::size_t i = axes; i-- > 0;) {
      if (++index[i] < tensor.shape[i]) break;
      index[i] = 0;
    }
  }
}

}  // namespace

Result<TorchFile> TorchFile::open(const std::string& path) {
  RETURN_IF_ERROR(check_not_legacy(path));
  auto zip = ZipFile::open(path);
  RETURN_IF_ERROR(zip);
  std::string folder;
  const ZipEntry* pickle = nullptr;
  for (const ZipEntry& entry : zip->entries()) {
    const auto slash = entry.name.find('/');
    if (slash == entry.name.npos || entry.name.substr(slash + 1) != pickle_name) continue;
    folder = entry.name.substr(0, slash + 1);
    pickle = &entry;
    break;
  }
  if (!pickle)
    return fail(Errc::corrupt, cat(path, ": expected an entry NAME/", pickle_name,
                                   ", as torch.save writes it; found none"));
  if (const ZipEntry* order = zip->find(folder + "byteorder")) {
    const auto value = zip->bytes(*order);
    if (value.size() == 3 && std::memcmp(value.data(), "big", 3) == 0)
      return fail(Errc::unsupported, cat(path, ": expected little-endian numbers, found big"));
  }
  const auto bytes = zip->verified(*pickle);
  RETURN_IF_ERROR(bytes);
  auto graph = read_pickle(*bytes, path);
  RETURN_IF_ERROR(graph);
  TorchFile out(std::move(*zip), std::move(folder));
  out.graph_ = std::move(*graph);
  RETURN_IF_ERROR(out.check_storages());
  return out;
}

const ZipEntry* TorchFile::storage(const PickledTensor& tensor) const {
  return zip_.find(cat(folder_, "data/", tensor.key));
}

/// Views of one storage would make a small file a result of any size.
Result<> TorchFile::check_views(std::uint64_t view_bytes) const {
  constexpr std::uint64_t most = 4;
  if (view_bytes <= most * zip_.size()) return {};
  return fail(Errc::unsupported,
              cat(path(), ": its ", graph_.tensors.size(), " tensors have ", view_bytes,
                  " bytes in all, more than ", most, " times the ", zip_.size(),
                  " bytes of the file: they are views of the same storages. If that is intended, "
                  "save copies (tensor.clone())"));
}

Result<> TorchFile::check_storages() const {
  std::uint64_t view_bytes = 0;
  for (const PickledTensor& tensor : graph_.tensors) {
    const ZipEntry* entry = storage(tensor);
    if (!entry)
      return fail(Errc::corrupt,
                  cat(path(), ": no entry ", quote(cat(folder_, "data/", tensor.key)),
                      ", the storage of a tensor"));
    // The number of elements has been limited when the storage was read.
    const auto expected = static_cast<std::uint64_t>(tensor.storage_count) * element_bytes(tensor);
    if (entry->size != expected)
      return fail(Errc::corrupt, cat(path(), ": entry ", quote(entry->name), ": expected ",
                                     expected, " bytes, found ", entry->size));
    const auto bytes = static_cast<std::uint64_t>(tensor.count()) * element_bytes(tensor);
    if (__builtin_add_overflow(view_bytes, bytes, &view_bytes)) view_bytes = UINT64_MAX;
  }
  return check_views(view_bytes);
}

Result<std::span<const std::byte>> TorchFile::bytes(const PickledTensor& tensor,
                                                    std::vector<std::byte>& buffer) const {
  const ZipEntry& entry = *storage(tensor);
  if (!verified_.contains(tensor.key)) {
    RETURN_IF_ERROR(zip_.verified(entry));
    verified_.insert(tensor.key);
  }
  const auto storage_bytes = zip_.bytes(entry);
  const std::size_t size = element_bytes(tensor),
                    length = static_cast<std::size_t>(tensor.count()) * size;
  if (tensor.contiguous())
    return storage_bytes.subspan(static_cast<std::size_t>(tensor.offset) * size, length);
  buffer.resize(length);
  gather(storage_bytes, tensor, buffer);
  return std::span<const std::byte>(buffer);
}

}  // namespace troupe::engine::checkpoint
