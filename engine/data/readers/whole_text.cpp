#include "engine/data/readers/whole_text.h"

#include "engine/data/readers/text_stream.h"

namespace troupe::engine::data {

Result<WholeText> WholeText::open(const std::string& path) {
  auto file = MappedFile::open(path);
  RETURN_IF_ERROR(file);
  WholeText out(std::move(*file));
  if (!is_gzip(out.bytes())) return out;
  auto inside = unpack(path, 64u << 20);
  RETURN_IF_ERROR(inside);
  out.unpacked_ = std::move(*inside);
  return out;
}

std::string_view WholeText::bytes() const {
  return {reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()};
}

std::string_view WholeText::text() const {
  std::string_view text = is_gzip(bytes()) ? std::string_view(unpacked_) : bytes();
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

}  // namespace troupe::engine::data
