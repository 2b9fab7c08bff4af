// Any text as a tuner's table: rules each of which is for something, or a refusal of one line.
#include <set>

#include "experiments/nccl/tuner_file.hpp"
#include "tests/fuzz/checked_programs.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const import::TunerFile file = import::parse_tuner_file(text, "t.conf");
    std::set<int> lines;
    for (const core::collective::TunerRule& rule : file.rules) {
      fuzz::require(lines.insert(rule.line).second && rule.line > 0);
      fuzz::require(rule.min_bytes >= 0 && rule.min_bytes <= rule.max_bytes && rule.channels >= 0 &&
                    rule.channels <= 64);
      core::collective::Communicator members;
      members.members = rule.members > 0 ? static_cast<std::uint32_t>(rule.members) : 8;
      members.per_node = 1;
      fuzz::require((rule.nodes > 0 && rule.nodes != members.members) ||
                    rule.matches(members, rule.kind, rule.max_bytes));
    }
    for (const auto& [line, why] : file.idle) fuzz::require(lines.insert(line).second && !why.empty());
    fuzz::require(!lines.empty());
  } catch (const core::InputError& error) {
    fuzz::require_refusal(error, "t.conf");
  }
  return 0;
}
