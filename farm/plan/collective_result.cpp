#include "farm/plan/collective_result.hpp"

#include "core/sharing/bytes.hpp"

namespace manyworlds::farm {

std::string encode(const CollectiveResult& result) {
  return core::sharing::ByteWriter()
      .integer(result.effort.link_hops.simulated)
      .integer(result.effort.link_hops.periods)
      .integer(result.effort.link_hops.rate)
      .real(result.effort.cpu_s)
      .text(core::step::encode(result.result))
      .take();
}

CollectiveResult decode_collective(std::string_view bytes) {
  core::sharing::ByteReader in(bytes);
  CollectiveResult result;
  for (auto* hops :
       {&result.effort.link_hops.simulated, &result.effort.link_hops.periods, &result.effort.link_hops.rate})
    *hops = in.integer();
  result.effort.cpu_s = in.real();
  result.result = core::step::decode_isolated(in.text());
  in.end();
  return result;
}

}  // namespace manyworlds::farm
