#include "transports/mpi/mpi_requests.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"

namespace troupe::transports::mpi {
namespace {

/// MPI guarantees tags up to 32767. The same on every rank and host (FNV-1a).
int tag_of(std::string_view kind, std::string_view what) {
  std::uint32_t hash = 2166136261U;
  for (const std::string_view text : {kind, what})
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return static_cast<int>((hash ^ (hash >> 15)) & 0x7fffU);
}

}  // namespace

Requests::Requests(std::shared_ptr<Session> session, MPI_Comm group, std::string_view kind,
                   std::string_view what)
    : session_(std::move(session)), group_(group), what_(what), tag_(tag_of(kind, what)) {
}

void Requests::send(std::span<const std::byte> data, int to) {
  session_->in_blocks(data.size(), [&](std::size_t begin, std::size_t n) {
    session_->check_success(MPI_Isend(data.data() + begin, static_cast<int>(n), MPI_BYTE, to, tag_,
                                      group_, &requests_.emplace_back(MPI_REQUEST_NULL)),
                            what_);
    expected_.push_back(-1);
  });
  bytes_ += data.size();
}

void Requests::receive(std::span<std::byte> data, int from) {
  session_->in_blocks(data.size(), [&](std::size_t begin, std::size_t n) {
    session_->check_success(MPI_Irecv(data.data() + begin, static_cast<int>(n), MPI_BYTE, from,
                                      tag_, group_, &requests_.emplace_back(MPI_REQUEST_NULL)),
                            what_);
    expected_.push_back(static_cast<int>(n));
  });
  bytes_ += data.size();
}

void Requests::finish(std::optional<std::chrono::nanoseconds> deadline) {
  check_lengths(session_->wait_all(requests_, bytes_, what_, deadline));
  if (then_) then_();
}

void Requests::check_lengths(const std::vector<MPI_Status>& statuses) const {
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    if (expected_[i] < 0) continue;
    int found = 0;
    MPI_Get_count(&statuses[i], MPI_BYTE, &found);
    if (found != expected_[i])
      session_->abort(cat("'", what_, "': expected ", expected_[i], " bytes from rank ",
                          statuses[i].MPI_SOURCE, " of the group, received ", found,
                          " (a bug in troupe, not in your input)"));
  }
}

}  // namespace troupe::transports::mpi
