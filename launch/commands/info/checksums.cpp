#include "launch/commands/info/report.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "engine/base/files/file.h"
#include "engine/base/random/sha256.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"

namespace troupe::launch::commands {

namespace {

namespace fs = std::filesystem;

using Sums = std::map<std::string, std::string>;  // by name, relative to the folder

constexpr std::size_t max_list_bytes = std::size_t{16} << 20;

/// Replaces the escapes of sha256sum, which begins the line of such a name with a backslash.
std::string unescaped(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '\\' || i + 1 == name.size()) {
      out.push_back(name[i]);
      continue;
    }
    const char next = name[++i];
    out.push_back(next == 'n' ? '\n' : next == 'r' ? '\r' : next);
  }
  return out;
}

/// A line "HEX  NAME" or "HEX *NAME". Errc::corrupt.
Result<> read_sum(std::string line, const std::string& where, Sums& sums) {
  if (line.ends_with('\r')) line.pop_back();
  const bool escaped = line.starts_with('\\');
  if (escaped) line.erase(0, 1);
  const auto is_digit = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  if (line.size() < 67 || !std::all_of(line.begin(), line.begin() + 64, is_digit) ||
      line[64] != ' ' || (line[65] != ' ' && line[65] != '*'))
    return fail(Errc::corrupt,
                cat(where,
                    ": expected 64 hexadecimal digits, two spaces and a file name, as "
                    "sha256sum prints them, found ",
                    quote(line, 80)));
  std::string sum = ascii_lower(line.substr(0, 64)), name = line.substr(66);
  if (escaped) name = unescaped(name);
  const fs::path path = fs::path(name).lexically_normal();
  if (path.is_absolute() || path.begin()->string() == "..")
    return fail(Errc::corrupt, cat(where, ": ", quote(name),
                                   " is not in the folder; list its files with names "
                                   "relative to it"));
  sums.insert_or_assign(path.string(), std::move(sum));
  return {};
}

Result<Sums> read_sums(const std::string& list) {
  const auto text = read_file(list, max_list_bytes);
  RETURN_IF_ERROR(text);
  Sums sums;
  std::size_t number = 0;
  for (const auto line : split(*text, '\n')) {
    ++number;
    if (!line.empty()) RETURN_IF_ERROR(read_sum(std::string(line), cat(list, ":", number), sums));
  }
  if (sums.empty()) return fail(Errc::corrupt, cat(list, ": has no checksums"));
  return sums;
}

Result<std::vector<std::string>> visible_files(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code failed;
  fs::recursive_directory_iterator at(folder, failed), end;
  for (; !failed && at != end; at.increment(failed)) {
    if (at->path().filename().string().starts_with('.')) {
      at.disable_recursion_pending();
      continue;
    }
    if (!at->is_directory(failed))
      out.push_back(at->path().lexically_relative(folder).lexically_normal().string());
  }
  if (failed) return fail(Errc::io, cat(folder, ": cannot list: ", failed.message()));
  std::ranges::sort(out);
  return out;
}

}  // namespace

void inspect_checksums(const std::string& folder, const std::string& list, Report& report) {
  report.begin("checksums", list);
  auto sums = read_sums(list);
  if (!sums) return report.problem(sums.error());
  std::error_code ignored;
  std::erase_if(*sums, [&](const auto& each) {  // sha256sum * > SHA256SUMS lists the list itself
    return fs::equivalent(cat(folder, "/", each.first), list, ignored);
  });
  const auto present = visible_files(folder);
  if (!present) return report.problem(present.error());
  std::int64_t matching = 0;
  for (const auto& [name, sum] : *sums) {
    const auto found = sha256_of_file(cat(folder, "/", name));
    if (!found && found.error().code == Errc::not_found)
      report.problem({Errc::corrupt, cat(name, ": missing")});
    else if (!found)
      report.problem(found.error());
    else if (*found != sum)
      report.problem({Errc::corrupt, cat(name, ": expected SHA-256 ", sum, ", found ", *found)});
    else
      ++matching;
  }
  for (const std::string& name : *present) {
    if (!sums->contains(name) && !fs::equivalent(cat(folder, "/", name), list, ignored))
      report.problem({Errc::corrupt, cat(name, ": not in the list")});
  }
  report.say("matching", matching, cat(matching, " of ", sums->size(), " files match"));
}

}  // namespace troupe::launch::commands
