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

#include "engine/base/errors/error.h"
#include "engine/models/decoder.h"
#include "engine/serving/generation_thread.h"

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

  std::int64_t rows() const { return every_token ? std::ssize(tokens) : 1; }
};

class PoolingService {
 public:
  /// Starts the thread, which alone uses the engine from then on. `engine` outlives it.
  PoolingService(Engine& engine, ServiceLimits limits);
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
