#include "launch/parity/report.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "engine/base/text/text.h"

namespace troupe::launch::parity {
namespace {

std::string location_text(const Location& at) {
  return cat("first in ", at.op, ", ", at.block,
             at.position ? cat(", row of position ", *at.position) : std::string(),
             ", of the path ", at.path);
}

std::string difference_text(const PairResult& pair) {
  const Difference& at = *pair.broken;
  std::ostringstream out;
  out << std::setprecision(9) << "broken: " << pair.first << " and " << pair.second << ": text "
      << at.text << ", position " << at.position << ", token " << at.token << ": ";
  if (at.quantity == "hidden state")
    out << "hidden states differ; log-probabilities ";
  else
    out << at.quantity << ' ';
  out << at.first << " and " << at.second;
  return out.str() + (pair.location ? cat("; ", location_text(*pair.location)) : "");
}

void write_table(std::ostringstream& out, const Report& report) {
  const auto name = [](const PairResult& pair) { return cat(pair.first, " = ", pair.second); };
  std::size_t width = 0;
  for (const PairResult& pair : report.pairs) width = std::max(width, name(pair).size());
  for (const PairResult& pair : report.pairs)
    out << std::left << std::setw(static_cast<int>(width) + 2) << name(pair) << std::setw(14)
        << promise_text(pair.promise) << std::setw(8)
        << (pair.broken                     ? "broken"
            : pair.promise == Promise::none ? "-"
                                            : "kept")
        << pair.tokens << " values, largest difference " << pair.largest << '\n';
}

Json pair_json(const PairResult& pair) {
  Json out = Json::Object{{"first", pair.first},
                          {"second", pair.second},
                          {"promise", promise_text(pair.promise)},
                          {"kept", !pair.broken},
                          {"values", pair.tokens},
                          {"excepted", pair.excepted},
                          {"largest_difference", pair.largest}};
  if (!pair.broken) return out;
  const Difference& at = *pair.broken;
  out.set("broken", Json::Object{{"quantity", at.quantity},
                                 {"text", static_cast<std::int64_t>(at.text)},
                                 {"position", at.position},
                                 {"token", at.token},
                                 {"first", at.first},
                                 {"second", at.second}});
  if (pair.location)
    out.set("location",
            Json::Object{
                {"path", pair.location->path},
                {"block", pair.location->block},
                {"operation", pair.location->op},
                {"position", pair.location->position ? Json(*pair.location->position) : Json()}});
  return out;
}

}  // namespace

std::string promise_text(Promise promise) {
  if (promise == Promise::none) return "none";
  return promise == Promise::equal ? "equal bits" : cat("within ", bound);
}

std::string report_text(std::span<const Report> reports) {
  std::ostringstream out;
  for (const Report& report : reports) {
    out << report.architecture << ", " << name_of(report.dtype) << ": " << report.texts
        << " texts of " << report.tokens << " tokens\n";
    write_table(out, report);
    std::int64_t excepted = 0;
    for (const PairResult& pair : report.pairs) excepted = std::max(excepted, pair.excepted);
    if (excepted > 0)
      out << "exception: " << excepted
          << " tokens were generated before the length at which the rotary factors of their text "
             "change; generation used the factors of the length so far "
             "(docs/adding-a-model.md#positions-that-depend-on-the-length)\n";
    for (const PairResult& pair : report.pairs)
      if (pair.broken) out << difference_text(pair) << '\n';
  }
  return out.str();
}

Json report_json(std::span<const Report> reports) {
  Json::Array all;
  bool kept = true;
  for (const Report& report : reports) {
    Json::Array pairs;
    for (const PairResult& pair : report.pairs) pairs.push_back(pair_json(pair));
    kept = kept && report.kept();
    all.push_back(Json::Object{{"architecture", report.architecture},
                               {"dtype", std::string(name_of(report.dtype))},
                               {"texts", report.texts},
                               {"tokens", report.tokens},
                               {"pairs", std::move(pairs)}});
  }
  return Json::Object{{"kept", kept}, {"reports", std::move(all)}};
}

}  // namespace troupe::launch::parity
