#include "launch/parity/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

namespace troupe::launch::parity {
namespace {

std::uint32_t bits(float x) {
  return std::bit_cast<std::uint32_t>(x);
}

bool is_close(double a, double b) {
  return std::abs(a - b) <= bound * std::max(1.0, std::abs(a));
}

bool keeps(Promise promise, float a, float b) {
  if (promise == Promise::none) return true;
  return promise == Promise::equal ? bits(a) == bits(b)
                                   : is_close(static_cast<double>(a), static_cast<double>(b));
}

/// Why the values break the promise, with both; the first cause in the order of the computation.
std::optional<Difference> difference(const TokenValues& a, const TokenValues& b, Promise promise) {
  const auto found = [&](const char* quantity, float x, float y) {
    return Difference{.quantity = quantity,
                      .token = a.token,
                      .first = static_cast<double>(x),
                      .second = static_cast<double>(y),
                      .values = {a, b}};
  };
  if (a.token != b.token)
    return found("token", static_cast<float>(a.token), static_cast<float>(b.token));
  const bool both_hidden = a.hidden && b.hidden && promise == Promise::equal;
  if (both_hidden && *a.hidden != *b.hidden) return found("hidden state", a.logp, b.logp);
  if (a.lse && b.lse && !keeps(promise, *a.lse, *b.lse))
    return found("log-sum-exp", *a.lse, *b.lse);
  if (!keeps(promise, a.logp, b.logp)) return found("log-probability", a.logp, b.logp);
  if (a.entropy && b.entropy && !keeps(promise, *a.entropy, *b.entropy))
    return found("entropy", *a.entropy, *b.entropy);
  return std::nullopt;
}

double largest_of(const TokenValues& a, const TokenValues& b) {
  double out = std::abs(static_cast<double>(a.logp) - static_cast<double>(b.logp));
  if (a.entropy && b.entropy)
    out =
        std::max(out, std::abs(static_cast<double>(*a.entropy) - static_cast<double>(*b.entropy)));
  return out;
}

void set_row(TokenValues& token, const HeadRow& row) {
  token.lse = row.lse;
  if (row.entropy) token.entropy = row.entropy;
  if (row.hidden != 0) token.hidden = row.hidden;
}

using RowsByToken = std::multimap<std::pair<std::int32_t, std::uint32_t>, HeadRow>;

bool is_row_of(const HeadRow& row, const TokenValues& token) {
  return token.lse && bits(*token.lse) == bits(row.lse) &&
         (!token.hidden || row.hidden == 0 || *token.hidden == row.hidden);
}

}  // namespace

void PairResult::add(const PairResult& more) {
  tokens += more.tokens;
  excepted += more.excepted;
  largest = std::max(largest, more.largest);
  if (broken) return;
  broken = more.broken;
  location = more.location;
}

bool is_excepted(const engine::models::DecoderSpec& spec, std::int64_t position,
                 std::int64_t length) {
  return std::ranges::any_of(spec.rotary, [&](const engine::nn::RotarySpec& table) {
    return table.frequency_set(position) != table.frequency_set(length);
  });
}

PairResult compare(const PathValues& a, const PathValues& b, const Path& path, Promise promise,
                   const ComparedTexts& of) {
  PairResult out{std::string(paths().front().name), std::string(path.name), promise};
  for (std::size_t copy = 0; copy < b.texts.size(); ++copy) {
    const std::size_t i = copy % of.texts.size();
    const TextValues &left = a.texts[i], &right = b.texts[copy];
    const auto from = std::max(left.first, right.first);
    const auto end =
        std::min(left.first + std::ssize(left.tokens), right.first + std::ssize(right.tokens));
    for (std::int32_t t = from; t < end; ++t) {
      if (path.samples && is_excepted(of.spec, t, std::ssize(of.texts[i].tokens))) {
        ++out.excepted;
        continue;
      }
      const TokenValues& x = left.tokens[static_cast<std::size_t>(t - left.first)];
      const TokenValues& y = right.tokens[static_cast<std::size_t>(t - right.first)];
      ++out.tokens;
      out.largest = std::max(out.largest, largest_of(x, y));
      if (out.broken) continue;
      out.broken = difference(x, y, promise);
      if (out.broken) {
        out.broken->text = of.number + i;
        out.broken->position = t;
      }
    }
  }
  return out;
}

void attach_rows(PathValues& values) {
  std::size_t at = 0;
  for (TextValues& text : values.texts)
    for (TokenValues& token : text.tokens) {
      if (at == values.rows.size()) return;
      set_row(token, values.rows[at++]);
    }
}

void attach_rows(PathValues& values, const PathValues& reference) {
  RowsByToken rows;
  for (const HeadRow& row : values.rows) rows.emplace(std::pair(row.target, bits(row.logp)), row);
  for (std::size_t i = 0; i < values.texts.size(); ++i) {
    TextValues& text = values.texts[i];
    const TextValues& expected = reference.texts[i % reference.texts.size()];
    for (std::size_t k = 0; k < text.tokens.size(); ++k) {
      TokenValues& token = text.tokens[k];
      const auto [begin, end] = rows.equal_range({token.token, bits(token.logp)});
      if (begin == end) continue;
      const auto at = k + static_cast<std::size_t>(text.first - expected.first);
      auto found = begin;
      if (at < expected.tokens.size())
        found = std::find_if(begin, end, [&](const auto& row) {
          return is_row_of(row.second, expected.tokens[at]);
        });
      if (found == end) found = begin;
      set_row(token, found->second);
      rows.erase(found);  // each row is of one token
    }
  }
}

}  // namespace troupe::launch::parity
