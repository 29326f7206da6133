#include "transports/zmq/zap_handler.h"

#include <array>
#include <vector>

namespace troupe::transports {

ZapHandler::ZapHandler(zmq::context_t& context, std::map<std::string, std::string> nodes,
                       Refusals& refusals)
    : socket_(context, zmq::socket_type::rep), nodes_(std::move(nodes)), refusals_(refusals) {
  socket_.set(zmq::sockopt::linger, 0);
  socket_.bind("inproc://zeromq.zap.01");
}

void ZapHandler::handle_requests() {
  zmq::message_t part;
  while (socket_.recv(part, zmq::recv_flags::dontwait)) {
    // version, request id, domain, address, identity, mechanism, credentials (the public key)
    std::vector<std::string> request{part.to_string()};
    while (part.more()) {
      static_cast<void>(socket_.recv(part));
      request.push_back(part.to_string());
    }
    const bool curve = request.size() == 7 && request[5] == "CURVE" && request[6].size() == 32;
    const auto known = curve ? nodes_.find(request[6]) : nodes_.end();
    const bool good = known != nodes_.end();
    if (!good) {
      std::array<char, 41> key{};
      if (curve)
        zmq_z85_encode(key.data(), reinterpret_cast<const unsigned char*>(request[6].data()), 32);
      refusals_.add(Refusal::unknown_key, key.data(),
                    "expected a key of this run, found another; does the process belong to another "
                    "run?");
    }
    const std::array<std::string, 6> reply{"1.0",
                                           request.size() > 1 ? request[1] : "",
                                           good ? "200" : "400",
                                           good ? "OK" : "unknown key",
                                           good ? known->second : "",
                                           ""};
    for (std::size_t i = 0; i < reply.size(); ++i)
      socket_.send(zmq::buffer(reply[i]),
                   i + 1 < reply.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
}

}  // namespace troupe::transports
