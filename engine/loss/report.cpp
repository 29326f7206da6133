#include "engine/loss/report.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::loss {
namespace {

constexpr std::array<std::string_view, 3> kind_names{"mean", "min", "max"};

// JSON has no infinity and no NaN; they are sent as strings.
Json number_json(double x) {
  return x == x && x - x == 0 ? Json(x) : Json(to_text(x));
}

Result<double> number_of(const Json& json) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (json.is_number()) return json.number();
  if (json == Json("inf")) return infinity;
  if (json == Json("-inf")) return -infinity;
  if (json == Json("nan") || json == Json("-nan")) return std::numeric_limits<double>::quiet_NaN();
  return fail(
      Errc::bad_input,
      cat("report: expected a number, \"nan\", \"inf\" or \"-inf\", found ", json.type_name()));
}

Result<Statistic> statistic_of(const Json& json, const std::string& name) {
  const auto bad = [&] {
    return fail(Errc::bad_input, cat("report: ", quote(name), ": expected [kind, sum, count]"));
  };
  if (!json.is_array() || json.array().size() != 3 || !json.array()[0].is_string()) return bad();
  const auto kind = std::find(kind_names.begin(), kind_names.end(), json.array()[0].string());
  const auto sum = number_of(json.array()[1]), count = number_of(json.array()[2]);
  if (kind == kind_names.end() || !sum || !count) return bad();
  return Statistic{static_cast<Statistic::Kind>(kind - kind_names.begin()), *sum, *count};
}

}  // namespace

double Statistic::value() const {
  return kind != Kind::mean ? sum : sum / count;
}

void Report::add(const std::string& name, Statistic statistic) {
  const auto [place, first] = statistics_.try_emplace(name, statistic);
  if (first) return;
  Statistic& old = place->second;
  check(old.kind == statistic.kind, "Report: one name has two kinds of statistic");
  old.count += statistic.count;
  if (old.kind == Statistic::Kind::mean) old.sum += statistic.sum;
  if (old.kind == Statistic::Kind::min) old.sum = std::min(old.sum, statistic.sum);
  if (old.kind == Statistic::Kind::max) old.sum = std::max(old.sum, statistic.sum);
}

void Report::mean(const std::string& name, double sum, double count) {
  add(name, {Statistic::Kind::mean, sum, count});
}

void Report::mean(const std::string& name, const Expr& x, const Expr& weight) {
  mean(name, sum(where(weight, x, 0.0) * weight).value(), sum(weight).value());
}

void Report::mean(const std::string& name, const Expr& x) {
  mean(name, sum(x).value(), static_cast<double>(x.size()));
}

void Report::min(const std::string& name, double value) {
  add(name, {Statistic::Kind::min, value, 1});
}
void Report::max(const std::string& name, double value) {
  add(name, {Statistic::Kind::max, value, 1});
}

void Report::merge(const Report& other) {
  for (const auto& [name, statistic] : other.statistics_) add(name, statistic);
}

std::optional<double> Report::find(const std::string& name) const {
  const auto found = statistics_.find(name);
  if (found == statistics_.end() || found->second.empty()) return std::nullopt;
  return found->second.value();
}

std::map<std::string, double> Report::values() const {
  std::map<std::string, double> out;
  for (const auto& [name, statistic] : statistics_)
    if (!statistic.empty()) out.emplace(name, statistic.value());
  return out;
}

Json Report::to_json() const {
  Json out = Json::Object{};
  for (const auto& [name, s] : statistics_)
    out.set(name, Json::Array{kind_names[static_cast<std::size_t>(s.kind)], number_json(s.sum),
                              number_json(s.count)});
  return out;
}

Result<Report> Report::from_json(const Json& json) {
  if (!json.is_object())
    return fail(Errc::bad_input, cat("report: expected an object, found ", json.type_name()));
  Report out;
  for (const auto& [name, value] : json.object()) {
    auto statistic = statistic_of(value, name);
    RETURN_IF_ERROR(statistic);
    out.statistics_.insert_or_assign(name, *statistic);
  }
  return out;
}

}  // namespace troupe::engine::loss
