#include "transports/zmq/zap.h"

#include <array>
#include <vector>

namespace troupe::transports {

Zap::Zap(zmq::context_t& context, std::map<std::string, std::string> nodes, Refusals& refusals)
    : socket_(context, zmq::socket_type::rep), nodes_(std::move(nodes)), refusals_(refusals) {
  socket_.set(zmq::sockopt::linger, 0);
  socket_.bind("inproc://zeromq.zap.01");
}

void Zap::answer() {
  zmq::message_t part;
  while (socket_.recv(part, zmq::recv_flags::dontwait)) {
    // version, request id, domain, address, identity, mechanism, then the mechanism's credentials:
    // the public key
    std::vector<std::string> question{part.to_string()};
    while (part.more()) {
      static_cast<void>(socket_.recv(part));
      question.push_back(part.to_string());
    }
    const bool curve = question.size() == 7 && question[5] == "CURVE" && question[6].size() == 32;
    const auto known = curve ? nodes_.find(question[6]) : nodes_.end();
    const bool good = known != nodes_.end();
    if (!good) {
      std::array<char, 41> key{};
      if (curve)
        zmq_z85_encode(key.data(), reinterpret_cast<const unsigned char*>(question[6].data()), 32);
      refusals_.add(Refusal::unknown_key, key.data(),
                    "expected a key that was made for this run, found another; is it a process of "
                    "another run?");
    }
    const std::array<std::string, 6> reply{"1.0",
                                           question.size() > 1 ? question[1] : "",
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
