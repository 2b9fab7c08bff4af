// The parts of an HTTP request that this server uses.
#pragma once

#include <string>

namespace manyworlds::farm::serve {

struct Request {
  enum class Method { get, head, other } method = Method::other;
  std::string path;   // up to the question mark, not decoded
  std::string query;  // after the question mark
  std::string host;   // header fields; "" if absent
  std::string authorization;
  std::string cookie;
  bool keep_alive = false;
};

}  // namespace manyworlds::farm::serve
