#include "launch/convert/progress.h"

#include "engine/base/file.h"
#include "engine/base/file_stamp.h"
#include "engine/base/text.h"

namespace troupe::launch {

Result<Json> stamps_of(const std::vector<std::string>& paths) {
  Json::Array out;
  for (const std::string& path : paths) {
    const auto stamp = stamp_of(path);
    RETURN_IF_ERROR(stamp);
    out.push_back(Json::Object{{"path", path},
                               {"inode", cat(stamp->device, ':', stamp->inode)},
                               {"bytes", stamp->bytes},
                               {"modified", stamp->modified}});
  }
  return Json(std::move(out));
}

namespace {

std::string text_of(const Json& conversion) {
  return conversion.dump(2) + "\n";
}

}  // namespace

bool is_record_of(const std::string& path, const Json& conversion) {
  const auto before = read_file(path, std::size_t{64} << 20);
  return before && *before == text_of(conversion);
}

Result<> write_record(const std::string& path, const Json& conversion) {
  return write_file_durably(path, text_of(conversion));
}

}  // namespace troupe::launch
