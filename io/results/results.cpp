// The tables of the results, and what the writer and the reader of results files share.
#include "io/results/results.hpp"

#include <fmt/format.h>

namespace manyworlds::io {

namespace {

// One list for both const and non-const Results.
template <class Table, class R>
std::array<std::pair<std::string, Table*>, 5> tables_of(R& results) {
  return {{{"experiments", &results.experiments},
           {"excluded", &results.excluded},
           {"subsimulations/kernels", &results.kernels},
           {"subsimulations/collectives", &results.collectives},
           {"subsimulations/episodes", &results.episodes}}};
}

/// Returns the attribute `name` of /provenance; null if there is none of that type.
template <typename T>
const T* provenance_value(const Results& results, const std::string& name) {
  for (const Attribute& attribute : results.provenance)
    if (attribute.name == name) return std::get_if<T>(&attribute.value);
  return nullptr;
}

}  // namespace

std::array<std::pair<std::string, const Table*>, 5> result_tables(const Results& results) {
  return tables_of<const Table>(results);
}

std::array<std::pair<std::string, Table*>, 5> result_tables(Results& results) {
  return tables_of<Table>(results);
}

std::span<const RequiredColumn> required_columns() {
  static constexpr std::array<RequiredColumn, 5> kColumns{{{"id", ElementType::integer},
                                                           {"status", ElementType::text},
                                                           {"step_time_s", ElementType::real},
                                                           {"tokens_per_s_per_gpu", ElementType::real},
                                                           {"memory_peak_bytes", ElementType::integer}}};
  return kColumns;
}

std::string assumed_defaults(const Results& results) {
  const std::string line = "\n" + std::string(kAssumedPrefix);
  const auto begin = results.spec.rfind(line);
  if (begin == std::string::npos) return "";
  const auto from = begin + line.size();
  return results.spec.substr(from, results.spec.find('\n', from) - from);
}

std::string assumed_text(const std::string& assumed) {
  return assumed.empty() ? "" : fmt::format("assumed defaults: {} (--set changes one, --assume 2021 all)\n", assumed);
}

double provenance_number(const Results& results, const std::string& name) {
  if (const auto* integer = provenance_value<std::int64_t>(results, name)) return static_cast<double>(*integer);
  const auto* real = provenance_value<double>(results, name);
  return real != nullptr ? *real : 0;
}

std::string objective_of(const Results& results) {
  const auto* text = provenance_value<std::string>(results, kObjective);
  return text != nullptr ? *text : "tokens_per_s_per_gpu";
}

std::string one_by_one_text(const Results& results) {
  const double ratio = provenance_number(results, "one_by_one_over_sweep");
  if (ratio == 0) return "";
  const double cpu_s = provenance_number(results, "one_by_one_cpu_s");
  const double samples = provenance_number(results, "one_by_one_samples");
  const std::string basis = samples == 0 ? ""
                                         : fmt::format(" (from {} run alone, standard error {:.0f} %)", samples,
                                                       100 * provenance_number(results, "one_by_one_error_s") / cpu_s);
  return fmt::format("one by one: {}{:.1f} s of CPU{}, {:.1f} times what the sweep took", samples == 0 ? "" : "about ",
                     cpu_s, basis, ratio);
}

}  // namespace manyworlds::io
