// The rows of a ledger, as an audit reads them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/database/database.h"
#include "engine/base/errors/error.h"
#include "launch/audit/findings.h"

namespace troupe::launch::audit {

struct Event {
  std::int64_t sequence = 0;
  std::string kind, samples;  ///< `samples`: a JSON array of ids, or ""
  std::optional<std::int64_t> batch, step;
  std::string hash, detail;
  std::optional<std::int64_t> segment, offset, bytes;
  std::string chain;
};

/// The ledger of a run at one moment.
class Events {
 public:
  /// Errc::not_found, corrupt, unsupported, io.
  static Result<Events> open(const std::string& run);

  const std::string& path() const { return path_; }
  /// Calls `visit` with each row in its order. Errc::corrupt, io.
  Result<> for_each(const std::function<void(const Event&)>& visit);

 private:
  Events(Database database, std::string path, bool begun)
      : database_(std::move(database)), path_(std::move(path)), begun_(begun) {}
  Database database_;
  std::string path_;
  bool begun_;  ///< it has tables
};

/// What the whole chain tells: its hashes by length, and which rows a later start took back.
struct Chain {
  std::map<std::int64_t, std::string> heads;  ///< stored, of the rows that were requested
  struct Start {
    std::int64_t sequence = 0, kept = 0;  ///< rows up to `kept` belong to the run
  };
  std::vector<Start> starts;
  bool survives(std::int64_t sequence) const;
};

/// Computes the chain again; a difference to what is stored is a finding. `wanted`: rows whose
/// hashes are returned.
Result<Chain> follow_chain(Events& events, const std::set<std::int64_t>& wanted,
                           Findings& findings);

/// The ids of a row's samples; nullopt where they are no list of integers.
std::optional<std::vector<std::int64_t>> samples_of(const Event& event);

/// The detail of a row; null without one, or where it is no JSON.
Json detail_of(const Event& event);

/// The element `index` of a list of an object, null without one.
Json element_of(const Json& object, std::string_view list, std::size_t index);

/// The member of a row's detail, null without one.
Json member_of(const Event& event, std::string_view name);

}  // namespace troupe::launch::audit
