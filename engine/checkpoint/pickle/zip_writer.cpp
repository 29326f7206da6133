#include "engine/checkpoint/pickle/zip_writer.h"

#include <algorithm>

#include "engine/checkpoint/pickle/little_endian.h"
#include "engine/checkpoint/pickle/zip_file.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::uint64_t alignment = 64, in_zip64_field = 0xFFFFFFFF;
constexpr std::uint16_t version_zip64 = 45, date = 0x0021;  // 1980-01-01: no time in the file

std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min(value, in_zip64_field));
}

std::uint16_t short_size(std::string_view text) {
  return static_cast<std::uint16_t>(text.size());
}

/// The fields that the header of an entry and the directory share, from the version to the sizes.
void append_common(std::string& out, std::uint32_t crc, std::uint64_t size) {
  append_integer(out, version_zip64);
  append_integer(out, std::uint16_t{0x0800});  // names are UTF-8
  append_integer(out, std::uint16_t{0});       // stored
  append_integer(out, std::uint16_t{0});       // midnight
  append_integer(out, date);
  append_integer(out, crc);
  append_integer(out, narrow(size));
  append_integer(out, narrow(size));
}

std::string zip64_field(std::initializer_list<std::uint64_t> values) {
  std::string out;
  if (values.size() == 0) return out;
  append_integer(out, std::uint16_t{1});
  append_integer(out, static_cast<std::uint16_t>(8 * values.size()));
  for (const auto value : values) append_integer(out, value);
  return out;
}

}  // namespace

Result<ZipWriter> ZipWriter::create(const std::string& path) {
  auto file = OutputFile::create(path);
  RETURN_IF_ERROR(file);
  return ZipWriter(std::move(*file));
}

Result<> ZipWriter::write(std::string_view bytes) {
  at_ += bytes.size();
  return file_.write(bytes);
}

Result<> ZipWriter::add(const std::string& name, std::span<const std::byte> bytes) {
  Entry entry{name, at_, bytes.size(), zip_checksum(bytes)};
  std::string extra = entry.size >= in_zip64_field ? zip64_field({entry.size, entry.size}) : "";
  std::string header;
  append_integer(header, std::uint32_t{0x04034b50});
  append_common(header, entry.crc, entry.size);
  append_integer(header, short_size(name));
  // A field "FB" of zeros fills up to the alignment, as in torch's own files.
  const std::uint64_t begin = at_ + header.size() + 2 + name.size() + extra.size() + 4;
  const auto padding = static_cast<std::uint16_t>((alignment - begin % alignment) % alignment);
  extra += "FB";
  append_integer(extra, padding);
  extra.append(padding, '\0');
  append_integer(header, short_size(extra));
  RETURN_IF_ERROR(write(header + name + extra));
  RETURN_IF_ERROR(file_.write(bytes));
  at_ += bytes.size();
  entries_.push_back(std::move(entry));
  return {};
}

Result<> ZipWriter::finish() {
  const std::uint64_t begin = at_;
  for (const Entry& entry : entries_) {
    const bool large = entry.size >= in_zip64_field, far = entry.offset >= in_zip64_field;
    const std::string extra = large && far ? zip64_field({entry.size, entry.size, entry.offset})
                              : large      ? zip64_field({entry.size, entry.size})
                              : far        ? zip64_field({entry.offset})
                                           : "";
    std::string header;
    append_integer(header, std::uint32_t{0x02014b50});
    append_integer(header, version_zip64);
    append_common(header, entry.crc, entry.size);
    append_integer(header, short_size(entry.name));
    append_integer(header, short_size(extra));
    header.append(10, '\0');  // no comment, disk 0, no attributes
    append_integer(header, narrow(entry.offset));
    RETURN_IF_ERROR(write(header + entry.name + extra));
  }
  const std::uint64_t size = at_ - begin, end64 = at_, count = entries_.size();
  std::string end;
  append_integer(end, std::uint32_t{0x06064b50});
  append_integer(end, std::uint64_t{44});
  append_integer(end, version_zip64);
  append_integer(end, version_zip64);
  append_integer(end, std::uint64_t{0});  // disks
  for (const std::uint64_t value : {count, count, size, begin}) append_integer(end, value);
  append_integer(end, std::uint32_t{0x07064b50});
  append_integer(end, std::uint32_t{0});
  append_integer(end, end64);
  append_integer(end, std::uint32_t{1});
  append_integer(end, std::uint32_t{0x06054b50});
  append_integer(end, std::uint32_t{0});
  for (int i = 0; i < 2; ++i)
    append_integer(end, static_cast<std::uint16_t>(std::min<std::uint64_t>(count, 0xFFFF)));
  append_integer(end, narrow(size));
  append_integer(end, narrow(begin));
  append_integer(end, std::uint16_t{0});
  RETURN_IF_ERROR(write(end));
  return file_.finish();
}

}  // namespace troupe::engine::checkpoint
