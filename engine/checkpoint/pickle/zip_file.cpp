#include "engine/checkpoint/pickle/zip_file.h"

#include <zlib.h>

#include <algorithm>
#include <optional>

#include "engine/base/text/text.h"
#include "engine/checkpoint/pickle/little_endian.h"

namespace troupe::engine::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t local_magic = 0x04034b50, central_magic = 0x02014b50,
                        end_magic = 0x06054b50, end64_magic = 0x06064b50,
                        locator_magic = 0x07064b50;
constexpr std::size_t local_bytes = 30, central_bytes = 46, end_bytes = 22, end64_bytes = 56,
                      locator_bytes = 20;
constexpr std::uint32_t in_zip64 = 0xFFFFFFFF;  // the value stands in the zip64 field

struct Directory {
  std::uint64_t entries = 0, begin = 0, size = 0;
};

bool magic_at(Bytes file, std::uint64_t at, std::uint32_t magic) {
  return at + 4 <= file.size() && load_integer<std::uint32_t>(file, at) == magic;
}

// The end record is the last one whose comment reaches exactly to the end of the file.
std::optional<std::size_t> find_end(Bytes file) {
  if (file.size() < end_bytes) return std::nullopt;
  const std::size_t last = file.size() - end_bytes, first = last > 0xFFFF ? last - 0xFFFF : 0;
  for (std::size_t at = last + 1; at-- > first;)
    if (magic_at(file, at, end_magic) &&
        at + end_bytes + load_integer<std::uint16_t>(file, at + 20) == file.size())
      return at;
  return std::nullopt;
}

Result<Directory> find_directory(Bytes file, const std::string& path) {
  const auto end = find_end(file);
  if (!end)
    return fail(Errc::corrupt, cat(path,
                                   ": expected a zip archive, as torch.save writes it since "
                                   "torch 1.6; found no end record: the file is truncated "
                                   "or of another kind"));
  Directory out{load_integer<std::uint16_t>(file, *end + 10),
                load_integer<std::uint32_t>(file, *end + 16),
                load_integer<std::uint32_t>(file, *end + 12)};
  std::uint64_t limit = *end;
  if (*end >= locator_bytes && magic_at(file, *end - locator_bytes, locator_magic)) {
    const auto at = load_integer<std::uint64_t>(file, *end - locator_bytes + 8);
    if (at > file.size() - end_bytes || file.size() - at < end64_bytes ||
        !magic_at(file, at, end64_magic))
      return fail(Errc::corrupt, cat(path, ": byte ", *end - locator_bytes, ": points to byte ", at,
                                     " of the file, where no zip64 end record is"));
    out = {load_integer<std::uint64_t>(file, at + 32), load_integer<std::uint64_t>(file, at + 48),
           load_integer<std::uint64_t>(file, at + 40)};
    limit = at;
  }
  if (out.begin > limit || out.size > limit - out.begin)
    return fail(Errc::corrupt, cat(path, ": the zip directory of ", out.size, " bytes at byte ",
                                   out.begin, " is not inside the file of ", file.size()));
  if (out.entries > ZipFile::entry_limit)
    return fail(Errc::unsupported, cat(path, ": ", out.entries, " zip entries; at most ",
                                       ZipFile::entry_limit, " are read"));
  if (out.entries > out.size / central_bytes)
    return fail(Errc::corrupt, cat(path, ": ", out.entries, " zip entries do not fit into a ",
                                   "directory of ", out.size, " bytes"));
  return out;
}

// Replaces the sizes and the offset that the zip64 field has; false when the field lacks one.
bool apply_zip64(Bytes extra, std::uint64_t& stored, std::uint64_t& size, std::uint64_t& offset) {
  while (extra.size() >= 4) {
    const auto id = load_integer<std::uint16_t>(extra, 0);
    const std::size_t length = load_integer<std::uint16_t>(extra, 2);
    if (length > extra.size() - 4) return false;
    Bytes field = extra.subspan(4, length);
    extra = extra.subspan(4 + length);
    if (id != 1) continue;
    for (std::uint64_t* value : {&size, &stored, &offset}) {
      if (*value != in_zip64) continue;
      if (field.size() < 8) return false;
      *value = load_integer<std::uint64_t>(field, 0);
      field = field.subspan(8);
    }
    return true;
  }
  return true;
}

/// One header of the directory, at `at`, which moves past it.
Result<ZipEntry> read_entry(Bytes file, const Directory& directory, std::uint64_t& at,
                            const std::string& path) {
  const auto wrong = [&](std::string_view what) {
    return fail(Errc::corrupt, cat(path, ": byte ", at, ": zip directory: ", what));
  };
  const std::uint64_t end = directory.begin + directory.size;
  if (end - at < central_bytes || !magic_at(file, at, central_magic))
    return wrong("expected the header of an entry");
  const std::size_t name = load_integer<std::uint16_t>(file, at + 28),
                    extra = load_integer<std::uint16_t>(file, at + 30),
                    comment = load_integer<std::uint16_t>(file, at + 32);
  if (name + extra + comment > end - at - central_bytes) return wrong("an entry is truncated");
  ZipEntry out;
  out.name.assign(reinterpret_cast<const char*>(file.data()) + at + central_bytes, name);
  out.crc = load_integer<std::uint32_t>(file, at + 16);
  std::uint64_t stored = load_integer<std::uint32_t>(file, at + 20),
                offset = load_integer<std::uint32_t>(file, at + 42);
  out.size = load_integer<std::uint32_t>(file, at + 24);
  if (!apply_zip64(file.subspan(at + central_bytes + name, extra), stored, out.size, offset))
    return wrong("a zip64 field is truncated");
  if (load_integer<std::uint16_t>(file, at + 8) & 1u ||
      load_integer<std::uint16_t>(file, at + 10) != 0)
    return fail(Errc::unsupported, cat(path, ": entry ", quote(out.name),
                                       ": expected stored bytes, as torch.save writes them; found "
                                       "compressed or encrypted ones"));
  if (stored != out.size) return wrong("the two sizes of a stored entry differ");
  // The sizes stand in the directory; of the local header only its own length is used.
  if (offset > directory.begin || directory.begin - offset < local_bytes ||
      !magic_at(file, offset, local_magic))
    return wrong("an offset does not point to an entry");
  out.begin = offset + local_bytes + load_integer<std::uint16_t>(file, offset + 26) +
              load_integer<std::uint16_t>(file, offset + 28);
  if (out.begin > directory.begin || out.size > directory.begin - out.begin)
    return wrong(cat("entry ", quote(out.name), " reaches beyond the file"));
  at += central_bytes + name + extra + comment;
  return out;
}

}  // namespace

std::uint32_t zip_checksum(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Result<> ZipFile::read_directory() {
  const Bytes file = file_.bytes();
  const auto directory = find_directory(file, path_);
  RETURN_IF_ERROR(directory);
  entries_.reserve(directory->entries);
  std::uint64_t at = directory->begin;
  for (std::uint64_t i = 0; i < directory->entries; ++i) {
    auto entry = read_entry(file, *directory, at, path_);
    RETURN_IF_ERROR(entry);
    entries_.push_back(std::move(*entry));
    if (!index_.emplace(entries_.back().name, entries_.size() - 1).second)
      return fail(Errc::corrupt,
                  cat(path_, ": two zip entries are called ", quote(entries_.back().name)));
  }
  return {};
}

Result<ZipFile> ZipFile::open(const std::string& path) {
  auto file = MappedFile::open(path);
  RETURN_IF_ERROR(file);
  ZipFile out(path, std::move(*file));
  RETURN_IF_ERROR(out.read_directory());
  return out;
}

const ZipEntry* ZipFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

std::span<const std::byte> ZipFile::bytes(const ZipEntry& entry) const {
  return file_.bytes().subspan(entry.begin, entry.size);
}

Result<std::span<const std::byte>> ZipFile::verified(const ZipEntry& entry) const {
  const Bytes out = bytes(entry);
  if (const auto crc = zip_checksum(out); crc != entry.crc)
    return fail(Errc::corrupt, cat(path_, ": entry ", quote(entry.name), ": expected the checksum ",
                                   entry.crc, ", found ", crc, ": the file is damaged"));
  return out;
}

}  // namespace troupe::engine::checkpoint
