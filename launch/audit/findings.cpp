#include "launch/audit/findings.h"

#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"

namespace troupe::launch::audit {

Json Findings::to_json(const std::string& run) const {
  Json out = Json::Object{{"run", run},
                          {"verdict", clean() ? "clean" : "damaged"},
                          {"rows", rows},
                          {"first_step", first_step},
                          {"last_step", last_step},
                          {"batches", batches},
                          {"trained", trained},
                          {"dropped", dropped},
                          {"open", open},
                          {"payloads", payloads},
                          {"removed_payloads", removed},
                          {"checkpoints", checkpoints},
                          {"compared_weights", weights},
                          {"logged_samples", logged}};
  Json::Array messages;
  for (std::size_t kind = 0; kind < counts_.size(); ++kind) {
    out.set(std::string(names_of(Damage())[kind]), static_cast<std::int64_t>(counts_[kind]));
    for (const auto& text : texts_[kind]) messages.push_back(text);
  }
  return out.set("findings", messages);
}

std::string Findings::to_text(const std::string& run) const {
  std::string out = cat(run, ": ", rows, " rows, steps ", first_step, " to ", last_step, ", ",
                        trained, " samples trained in ", batches, " batches, ", dropped,
                        " dropped, ", open, " open\n", payloads, " payloads (", removed,
                        " removed after two checkpoints), ", checkpoints, " checkpoints, ", weights,
                        " published weights and ", logged, " logged samples compared\n");
  for (std::size_t kind = 0; kind < counts_.size(); ++kind)
    out += cat(kind == 0 ? "" : ", ", counts_[kind], " ", names_of(Damage())[kind]);
  out += "\n";
  for (std::size_t kind = 0; kind < counts_.size(); ++kind) {
    for (const auto& text : texts_[kind]) out += cat(names_of(Damage())[kind], ": ", text, "\n");
    if (counts_[kind] > texts_[kind].size())
      out +=
          cat(names_of(Damage())[kind], ": and ", counts_[kind] - texts_[kind].size(), " more\n");
  }
  return out + (clean() ? "verdict: clean\n" : "verdict: damaged\n");
}

}  // namespace troupe::launch::audit
