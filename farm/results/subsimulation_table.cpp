#include "farm/results/subsimulation_table.hpp"

#include "core/base/error.hpp"

namespace manyworlds::farm {

void SubsimulationTable::add(const std::vector<core::step::SubsimulationUse>& used, std::uint32_t experiments) {
  for (const core::step::SubsimulationUse& one : used) {
    const auto [entry, is_new] = by_key_.try_emplace(one.key, Entry{one.parameters, one.result_ps, 0});
    MANYWORLDS_CHECK(entry->second.result_ps == one.result_ps, "{} ({}) gives {} ps and {} ps", one.parameters,
                     one.key.hex(), entry->second.result_ps, one.result_ps);
    entry->second.used_by += experiments;
  }
}

io::Table SubsimulationTable::table() const {
  std::vector<std::string> keys, parameters;
  std::vector<std::int64_t> results, used_by;
  for (const auto& [key, entry] : by_key_) {
    keys.push_back(key.hex());
    parameters.push_back(entry.parameters);
    results.push_back(entry.result_ps);
    used_by.push_back(entry.used_by);
  }
  return {{{"key", "", "digest of everything it depends on", std::move(keys)},
           {"parameters", "", "what it is", std::move(parameters)},
           {"result_ps", "ps", "how long it lasts", std::move(results)},
           {"used_by", "", "experiments that use it", std::move(used_by)}}};
}

}  // namespace manyworlds::farm
