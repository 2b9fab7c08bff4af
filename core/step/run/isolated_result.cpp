// The serialised form of an isolated result. It has a file of its own so that reading results does not link the
// engines.
#include "core/sharing/bytes.hpp"
#include "core/step/network/isolated.hpp"

namespace manyworlds::core::step {

std::string encode(const IsolatedResult& result) {
  sharing::ByteWriter out;
  out.integer(static_cast<std::int64_t>(result.exits.size()));
  for (const Time exit : result.exits) out.integer(exit);
  out.integer(result.drained)
      .integer(result.counters.link_hops)
      .integer(result.counters.ecn_marks)
      .integer(result.counters.pauses);
  return out.take();
}

IsolatedResult decode_isolated(std::string_view bytes) {
  sharing::ByteReader in(bytes);
  IsolatedResult result;
  result.exits.resize(in.count(8));
  for (Time& exit : result.exits) exit = in.integer();
  result.drained = in.integer();
  result.counters.link_hops = in.integer();
  result.counters.ecn_marks = in.integer();
  result.counters.pauses = in.integer();
  in.end();
  return result;
}

}  // namespace manyworlds::core::step
