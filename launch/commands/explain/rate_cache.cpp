#include "launch/commands/explain/rate_cache.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::launch::commands {

namespace {

constexpr std::int64_t rates_format = 1;
constexpr std::size_t max_rates = 256, max_cache_bytes = 1 << 20;

bool has_text(const Json& entry, std::string_view key) {
  const Json* found = entry.find(key);
  return found && found->is_string();
}

bool is_date(const std::string& text) {
  if (text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (i == 4 || i == 7 ? text[i] != '-' : text[i] < '0' || text[i] > '9') return false;
  return true;
}

bool is_entry(const Json& entry) {
  if (!entry.is_object()) return false;
  for (const char* key : {"processor", "instruction_set", "dtype", "date"})
    if (!has_text(entry, key)) return false;
  const Json *threads = entry.find("threads"), *flops = entry.find("flops");
  return threads && threads->is_integer() && flops && flops->is_number() && flops->number() > 0 &&
         std::isfinite(flops->number()) && is_date(entry.find("date")->string());
}

Result<std::vector<Json>> entries_of(std::string_view text) {
  if (text.empty()) return std::vector<Json>();
  const auto refuse = [](const std::string& why) {
    return fail(Errc::corrupt, cat("expected the rates that troupe explain stored, found ", why));
  };
  const auto json = parse_json(text, "rates.json", {.depth = 4, .bytes = max_cache_bytes});
  if (!json) return refuse(json.error().what);
  const Json *version = json->is_object() ? json->find("format") : nullptr,
             *rates = json->is_object() ? json->find("rates") : nullptr;
  if (!version || !version->is_integer() || version->integer() != rates_format || !rates ||
      !rates->is_array())
    return refuse("another format");
  std::vector<Json> entries;
  for (const Json& entry : rates->array()) {
    if (!is_entry(entry)) return refuse("an entry without the members of a rate");
    entries.push_back(entry);
  }
  return entries;
}

bool is_of(const Json& entry, const RateKey& key) {
  return entry.find("processor")->string() == key.processor &&
         entry.find("instruction_set")->string() == key.instruction_set &&
         entry.find("threads")->integer() == key.threads &&
         entry.find("dtype")->string() == key.dtype;
}

}  // namespace

Result<std::optional<StoredRate>> find_rate(std::string_view text, const RateKey& key) {
  const auto entries = entries_of(text);
  RETURN_IF_ERROR(entries);
  for (const Json& entry : *entries)
    if (is_of(entry, key))
      return StoredRate{entry.find("flops")->number(), entry.find("date")->string()};
  return std::nullopt;
}

std::string with_rate(std::string_view text, const RateKey& key, const StoredRate& rate) {
  auto entries = entries_of(text).value_or(std::vector<Json>());
  std::erase_if(entries, [&](const Json& entry) { return is_of(entry, key); });
  entries.push_back(Json()
                        .set("processor", key.processor)
                        .set("instruction_set", key.instruction_set)
                        .set("threads", key.threads)
                        .set("dtype", key.dtype)
                        .set("flops", rate.flops)
                        .set("date", rate.date));
  const std::size_t first = entries.size() > max_rates ? entries.size() - max_rates : 0;
  std::string out = cat("{\"format\":", rates_format, ",\"rates\":[\n");
  for (std::size_t i = first; i < entries.size(); ++i)
    out += cat(entries[i].dump(), i + 1 < entries.size() ? ",\n" : "\n");
  return out + "]}\n";
}

std::string rate_cache_path() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache == '/') return cat(cache, "/troupe/rates.json");
  if (home && *home == '/') return cat(home, "/.cache/troupe/rates.json");
  return "";
}

std::string processor_name() {
  std::istringstream lines(read_proc_file("/proc/cpuinfo"));
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname system{};
  return uname(&system) == 0 ? std::string(system.machine) : "unknown";
}

}  // namespace troupe::launch::commands
