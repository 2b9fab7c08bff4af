// A request as far as this server looks at it.
#pragma once

#include <string>

namespace manyworlds::farm::serve {

struct Request {
  enum class Method { get, head, other } method = Method::other;
  std::string path;   // up to the question mark, as it came
  std::string query;  // behind it
  std::string host;   // header fields; "" where there is none
  std::string authorization;
  std::string cookie;
  bool keep_alive = false;
};

}  // namespace manyworlds::farm::serve
