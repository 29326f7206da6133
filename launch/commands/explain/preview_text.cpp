#include "launch/commands/explain/preview_text.h"

#include <algorithm>
#include <numeric>

#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"

namespace troupe::launch::commands {

namespace {

constexpr std::size_t label_width = 18;

std::string padded_left(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

// 1, 2 or 5 times a power of ten, at least `value`.
std::int64_t round_up(std::int64_t value) {
  for (std::int64_t power = 1;; power *= 10)
    for (const std::int64_t digit : {1, 2, 5})
      if (digit * power >= value) return digit * power;
}

// The smallest length that at least this share of `sorted` does not exceed.
std::int64_t quantile(const std::vector<std::int64_t>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(share * last + 0.5)];
}

}  // namespace

std::string grouped(std::int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string labelled_line(std::string_view label, std::string_view value) {
  std::string text(label);
  text.resize(std::max(label_width, text.size() + 1), ' ');
  return cat("  ", text, value, "\n");
}

std::string duration_text(double seconds) {
  if (seconds < 1) return cat(to_text(seconds, 3), " s");
  if (seconds < 100) return cat(to_text(seconds, seconds < 10 ? 1 : 0), " s");
  if (seconds < 6000) return cat(to_text(seconds / 60, 0), " min");
  if (seconds < 48 * 3600) return cat(to_text(seconds / 3600, 1), " h");
  return cat(to_text(seconds / 86400, 1), " days");
}

std::string rows_text(const DataPreview& preview) {
  const auto& report = preview.report;
  const std::string all = !preview.rows      ? "more than " + grouped(report.rows)
                          : preview.complete ? grouped(report.rows)
                                             : grouped(*preview.rows);
  std::string text = labelled_line("layout", name_of(report.layout));
  text +=
      labelled_line("rows", cat(all, ", ", grouped(report.used()),
                                preview.complete ? " used"
                                                 : cat(" used of the first ", grouped(report.rows),
                                                       ", which were tokenized")));
  if (report.held_out > 0)
    text += labelled_line("held out", cat(grouped(report.held_out), " rows, by data.split"));
  if (!report.unread.empty()) {
    std::vector<std::string> columns;
    for (const auto& [column, rows] : report.unread)
      columns.push_back(cat(quote(column, 40), " (", grouped(rows), ")"));
    text += labelled_line("unread columns", join(columns, ", "));
  }
  for (const auto& reason : report.unused)
    text +=
        labelled_line(reason.malformed ? "malformed" : "dropped",
                      cat(grouped(reason.rows), ": ", reason.why, " (first: ", reason.first, ")"));
  if (report.truncated > 0)
    text += labelled_line("truncated", cat(grouped(report.truncated), " rows, ",
                                           grouped(report.cut_tokens), " tokens lost"));
  if (report.chunked > 0)
    text += labelled_line("split", cat(grouped(report.chunked), " documents, into ",
                                       grouped(report.chunks), " examples"));
  const bool prompts = preview.trained_tokens == 0;
  text += labelled_line(
      "tokens", cat(grouped(preview.tokens), preview.complete ? "" : " in those rows",
                    prompts ? " of prompts"
                            : cat(", ", grouped(preview.trained_tokens), " of them trained on")));
  return text;
}

std::string histogram_text(std::vector<std::int64_t> lengths) {
  std::ranges::sort(lengths);
  const auto sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  std::string text =
      labelled_line("sequence length",
                    cat("median ", quantile(lengths, 0.5), ", mean ",
                        to_text(static_cast<double>(sum) / static_cast<double>(lengths.size()), 1),
                        ", 95 % ", quantile(lengths, 0.95), ", longest ", lengths.back()));
  const auto low = lengths.front(), width = round_up((lengths.back() - low) / 10 + 1);
  std::vector<std::int64_t> counts;
  const auto begin = low / width * width;
  for (const auto length : lengths) {
    const auto bin = static_cast<std::size_t>((length - begin) / width);
    if (bin >= counts.size()) counts.resize(bin + 1);
    ++counts[bin];
  }
  const auto most = *std::ranges::max_element(counts);
  const std::size_t digits = grouped(begin + std::ssize(counts) * width).size(),
                    number = grouped(most).size(), room = preview_columns - 2 * digits - number - 8;
  for (std::size_t bin = 0; bin < counts.size(); ++bin) {
    const auto from = begin + static_cast<std::int64_t>(bin) * width;
    const auto bar =
        (static_cast<std::size_t>(counts[bin]) * room + static_cast<std::size_t>(most) - 1) /
        static_cast<std::size_t>(most);
    text += cat("  ", padded_left(grouped(from), digits), " - ",
                padded_left(grouped(from + width - 1), digits), "  ",
                padded_left(grouped(counts[bin]), number), ' ', std::string(bar, '#'), "\n");
  }
  return text;
}

}  // namespace troupe::launch::commands
