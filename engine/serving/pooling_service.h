// PoolingService: scores and embeddings of texts by a decoder in a thread of its own, for servers.
//
// The values of a sequence have the bits that it has alone. Every accepted job ends with exactly
// one call of on_end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/models/decoder.h"
#include "engine/serving/generation_service.h"

namespace troupe::engine::serving {

struct PoolingJob {
  std::vector<std::int32_t> tokens;  ///< at least one, each in the vocabulary
  bool every_token = false;          ///< values of each token instead of the last one's
  /// Receives [rows, columns], a row per token or one: the outputs of the score head or, of a model
  /// without one, the hidden state after the final norm. Called in the service's thread.
  /// Errc::timeout after the deadline, closed when the service ends.
  std::function<void(Result<std::vector<float>>)> on_end;
  /// Whether somebody still waits for the values; nullptr: always. Asked in the service's thread
  /// before the job starts, which then ends with Errc::cancelled.
  std::function<bool()> wanted = nullptr;
};

class PoolingService {
 public:
  /// Starts the thread. `decoder` and `others` must outlive the service, and no one else may use
  /// them. `others`: the ranks that share the decoder; nullptr: none.
  PoolingService(models::Decoder& decoder, ops::Precision precision, ServiceLimits limits,
                 OtherRanks* others = nullptr);
  ~PoolingService();  ///< stop()
  PoolingService(const PoolingService&) = delete;
  PoolingService& operator=(const PoolingService&) = delete;

  /// Ends every job with Errc::closed and joins the thread; later calls of submit() fail.
  void stop();

  // From here on, every function may be called from any thread.

  /// Accepts all jobs or none. `client`: sequences of different clients start in turn. Errc::full
  /// when too many sequences wait; closed after the end.
  Result<> submit(std::vector<PoolingJob> jobs, const std::string& client);
  ServiceCounters counters() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace troupe::engine::serving
