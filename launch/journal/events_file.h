// TensorBoard event files: TFRecord frames (length, masked CRC-32C, payload, masked CRC-32C) around
// Event messages. Formats: tensorflow/core/lib/io/record_writer.h,
// tensorflow/core/util/event.proto, framework/summary.proto (field numbers below).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "algorithms/training/journal.h"

namespace troupe::launch::journal {

/// CRC-32C (Castagnoli), RFC 3720 appendix B.4.
std::uint32_t crc32c(std::string_view bytes);
/// One TFRecord frame around `payload`.
std::string tf_record(std::string_view payload);

/// Event{wall_time, file_version: "brain.Event:2"}, the first of a file.
std::string version_event(double wall_time);
/// Event{wall_time, step, session_log: START}: TensorBoard discards the values of earlier files at
/// `step` and later.
std::string restart_event(double wall_time, std::int64_t step);
/// Event{wall_time, step, summary: one simple_value per metric}. Values are f32; non-finite ones
/// are dropped.
std::string metrics_event(double wall_time, std::int64_t step, const algorithms::Metrics& metrics);

}  // namespace troupe::launch::journal
