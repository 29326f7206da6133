// RequestParser: what it accepts, what it refuses with which status, and that the pieces in which
// bytes arrive do not matter.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/text/text.h"
#include "launch/serve/http/request_parser.h"

namespace troupe::launch::serve::http {
namespace {

using State = serve::http::RequestParser::State;

struct Parsed {
  State state = State::more;
  serve::http::Request request;
  int status = 0;
  std::size_t used = 0;
};

Parsed parse(std::string_view bytes, std::size_t step, serve::http::ServerLimits limits = {}) {
  serve::http::RequestParser parser(limits);
  Parsed out;
  std::string input;
  for (std::size_t at = 0; at < bytes.size() && out.state != State::failed;) {
    const std::string_view piece = bytes.substr(at, step);
    at += piece.size();
    input += piece;
    State state = State::header;
    while (state == State::header && !input.empty()) {
      std::size_t consumed = 0;
      state = parser.feed(input, consumed);
      input.erase(0, consumed);
      out.used += consumed;
    }
    out.state = state == State::header ? State::more : state;
    if (state == State::complete) break;
  }
  out.request = parser.request();
  out.status = parser.status();
  return out;
}

TEST(RequestParser, ReadsAHeaderAndABodyInPiecesOfAnySize) {
  const std::string bytes =
      "POST /v1/completions?stream=1 HTTP/1.1\r\nHost: localhost:80\r\nX-A:  two words \r\n"
      "Content-Length: 5\r\n\r\nhello";
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    const Parsed parsed = parse(bytes + "GET", step);
    ASSERT_EQ(parsed.state, State::complete) << step;
    EXPECT_EQ(parsed.request.method, "POST");
    EXPECT_EQ(parsed.request.path, "/v1/completions");
    EXPECT_EQ(parsed.request.query, "stream=1");
    EXPECT_EQ(*parsed.request.header("x-a"), "two words");
    EXPECT_EQ(parsed.request.body, "hello");
    EXPECT_TRUE(parsed.request.keep_alive);
    EXPECT_EQ(parsed.used, bytes.size());
  }
}

TEST(RequestParser, ReadsChunksAndIgnoresTrailers) {
  const std::string bytes =
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;x=1\r\nhello\r\n6\r\n world\r\n0\r\nHost: b\r\nX-Trailer: c\r\n\r\n";
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    const Parsed parsed = parse(bytes, step);
    ASSERT_EQ(parsed.state, State::complete) << step;
    EXPECT_EQ(parsed.request.body, "hello world");
    EXPECT_EQ(*parsed.request.header("host"), "a");
    EXPECT_EQ(parsed.request.header("x-trailer"), nullptr);
  }
}

TEST(RequestParser, ReadsABodyOfNoChunksInPieces) {
  const std::string bytes =
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    const Parsed parsed = parse(bytes, step);
    EXPECT_EQ(parsed.state, State::complete) << step;
    EXPECT_EQ(parsed.used, bytes.size());
  }
}

TEST(RequestParser, KnowsWhenAConnectionEnds) {
  EXPECT_FALSE(parse("GET / HTTP/1.0\r\n\r\n", 100).request.keep_alive);
  EXPECT_TRUE(parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 100).request.keep_alive);
  EXPECT_FALSE(
      parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 100).request.keep_alive);
}

struct Malformed {
  std::string bytes;
  int status;
};

std::vector<Malformed> malformed_requests() {
  const std::string host = "Host: a\r\n", get = "GET / HTTP/1.1\r\n", post = "POST / HTTP/1.1\r\n";
  const std::string chunked = post + host + "Transfer-Encoding: chunked\r\n";
  return {
      // Lines
      {"GET / HTTP/1.1\nHost: a\n\n", 400},
      {get + "Host: a\n\r\n", 400},
      {get + host + "X: a\nY: b\r\n\r\n", 400},
      {get + host + "X: a\rY: b\r\n\r\n", 400},
      {get + host + "X: a\r\n b\r\n\r\n", 400},
      {get + host + "X: a\r\n\tb\r\n\r\n", 400},
      {get + host + "X:\r\n \r\n\r\n", 400},
      {get + " " + host + "\r\n", 400},
      {get + "Host : a\r\n\r\n", 400},
      {get + host + "X\r\n\r\n", 400},
      {get + host + ": a\r\n\r\n", 400},
      {get + host + "X Y: a\r\n\r\n", 400},
      {get + host + std::string("X: a\0b\r\n\r\n", 10), 400},
      {get + host + "X: a\x01\r\n\r\n", 400},
      // Request lines
      {"get\r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET /a b HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET /\x80 HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET http://a/ HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET a HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET * HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET /#a HTTP/1.1\r\n" + host + "\r\n", 400},
      {"CONNECT a:1 HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET / HTTP/2.0\r\n" + host + "\r\n", 505},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"GET / HTTP/0.9\r\n\r\n", 505},
      {"GET /\r\n\r\n", 400},
      {"\x16\x03\x01\x02\x01\x01\x02", 400},
      // Host
      {get + "\r\n", 400},
      {get + "Host: a\r\nHost: a\r\n\r\n", 400},
      {get + "Host:\r\n\r\n", 400},
      {get + "Host: a b\r\n\r\n", 400},
      // Where the body ends
      {post + host + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400},
      {post + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\na", 400},
      {post + host + "Content-Length: 1, 1\r\n\r\na", 400},
      {post + host + "Content-Length: -1\r\n\r\n", 400},
      {post + host + "Content-Length: +1\r\n\r\na", 400},
      {post + host + "Content-Length: 0x1\r\n\r\na", 400},
      {post + host + "Content-Length: 1 1\r\n\r\na", 400},
      {post + host + "Content-Length:\r\n\r\n", 400},
      {post + host + "Content-Length: 99999999999999999999999\r\n\r\n", 400},
      {post + host + "Content-Length: 18446744073709551615\r\n\r\n", 413},
      {post + host + "Content-Length: 3000000\r\n\r\n", 413},
      {chunked + "Content-Length: 5\r\n\r\n0\r\n\r\n", 400},
      {post + host + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {chunked + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {post + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
      {post + host + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400},
      {post + host + "Transfer-Encoding: identity\r\n\r\n", 400},
      {post + host + "Transfer-Encoding: xchunked\r\n\r\n", 400},
      {post + host + "Transfer-Encoding:\r\n\r\n", 400},
      {"POST / HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      // Chunks
      {chunked + "\r\ng\r\n0\r\n\r\n", 400},
      {chunked + "\r\n-1\r\n0\r\n\r\n", 400},
      {chunked + "\r\n5\nhello\r\n0\r\n\r\n", 400},
      {chunked + "\r\n5\r\nhelloX\r\n0\r\n\r\n", 400},
      {chunked + "\r\n5;a\nb\r\nhello\r\n0\r\n\r\n", 400},
      {chunked + "\r\n5 ;;\r\nhello\r\n0\r\n\r\n", 400},
      {chunked + "\r\nffffffffffffffffff\r\n", 400},
      {chunked + "\r\nffffffffffffffff\r\n", 413},
      {chunked + "\r\n0\r\nX\r\n\r\n", 400},
      // Sizes
      {get + host + "X: " + std::string(20000, 'a') + "\r\n\r\n", 431},
      {get + host + "X: " + std::string(20000, 'a'), 431},
      {"GET /" + std::string(20000, 'a'), 431},
      {get + host + "Expect: something\r\n\r\n", 417},
  };
}

TEST(RequestParser, RefusesWhatIsMalformedWithItsStatus) {
  for (const Malformed& one : malformed_requests())
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, one.bytes.size()}) {
      const Parsed parsed = parse(one.bytes, step);
      EXPECT_EQ(parsed.state, State::failed) << quote(one.bytes, 120) << " by " << step;
      EXPECT_EQ(parsed.status, one.status) << quote(one.bytes, 120) << " by " << step;
    }
}

TEST(RequestParser, LimitsTheNumberOfFields) {
  std::string bytes = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 64; ++i) bytes += cat("X", i, ": a\r\n");
  EXPECT_EQ(parse(bytes + "\r\n", 1000).status, 431);
}

TEST(RequestParser, LimitsTheBodyOfChunks) {
  std::string bytes = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 11; ++i) bytes += "a\r\n0123456789\r\n";
  EXPECT_EQ(parse(bytes, 1000, {.body_bytes = 100}).status, 413);
}

}  // namespace
}  // namespace troupe::launch::serve::http
