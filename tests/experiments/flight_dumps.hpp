// Small dumps of PyTorch's flight recorder, as JSON and as the pickle that torch's own pickler writes of the same.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/nccl_logs/read_flight_recorder.hpp"

namespace manyworlds::tests {

using nlohmann::json;

/// The dump of one rank; every call adds an entry.
class DumpText {
 public:
  explicit DumpText(const json& groups, std::int64_t first_record = 0) : record_(first_record) {
    document_["version"] = "2.10";
    document_["pg_config"] = json::object();
    for (const auto& [name, ranks] : groups.items())
      document_["pg_config"][name] = {{"name", name}, {"desc", name + "_pg"}, {"ranks", ranks.dump()}};
    document_["pg_status"] = json::object();
    document_["entries"] = json::array();
  }

  /// Sizes are of float tensors: [[1000]] has 4,000 bytes.
  DumpText& call(const std::string& group, const std::string& name, std::int64_t sequence, const json& in,
                 const json& out, const std::string& state = "completed", std::int64_t transfer = 0) {
    const auto types = [](const json& sizes) { return json(std::vector<std::string>(sizes.size(), "Float")); };
    document_["entries"].push_back({{"record_id", record_++},
                                    {"pg_id", 0},
                                    {"process_group", {group, group + "_pg"}},
                                    {"collective_seq_id", sequence},
                                    {"p2p_seq_id", transfer},
                                    {"op_id", record_},
                                    {"profiling_name", "nccl:" + name},
                                    {"time_created_ns", 1'724'779'239'000'000'000 + 5000 * record_},
                                    {"input_sizes", in},
                                    {"input_dtypes", types(in)},
                                    {"output_sizes", out},
                                    {"output_dtypes", types(out)},
                                    {"state", state},
                                    {"time_discovered_started_ns", nullptr},
                                    {"retired", state == "completed"},
                                    {"timeout_ms", 600000},
                                    {"is_p2p", transfer > 0}});
    return *this;
  }
  DumpText& all_reduce(const std::string& group, std::int64_t sequence, std::int64_t elements,
                       const std::string& state = "completed") {
    return call(group, "all_reduce", sequence, {{elements}}, {{elements}}, state);
  }

  const json& document() const { return document_; }
  std::string text() const { return document_.dump(); }

 private:
  json document_;
  std::int64_t record_;
};

/// Writes a value as torch/csrc/jit/serialization/pickler.cpp does, in protocol 2.
inline void put_pickled(const json& value, std::string& to) {
  const auto little = [&](std::uint64_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) to += static_cast<char>(number >> (8 * i) & 255);
  };
  const auto put_text = [&](const std::string& text) {
    to += 'X';
    little(text.size(), 4);
    to += text;
  };
  if (value.is_null()) {
    to += 'N';
  } else if (value.is_boolean()) {
    to += value.get<bool>() ? '\x88' : '\x89';
  } else if (value.is_number_integer()) {
    to += "\x8a\x08";
    little(value.get<std::uint64_t>(), 8);
  } else if (value.is_string()) {
    put_text(value.get<std::string>());
  } else if (value.is_array()) {
    to += "](";
    for (const json& one : value) put_pickled(one, to);
    to += 'e';
  } else {
    to += "}(";
    for (const auto& [key, one] : value.items()) put_text(key), put_pickled(one, to);
    to += 'u';
  }
}
inline std::string pickled(const json& value) {
  std::string bytes = "\x80\x02";
  put_pickled(value, bytes);
  return bytes + ".";
}

/// Imports dumps of ranks 0, 1 and on.
inline experiments::programs::Imported import_dumps(const std::vector<DumpText>& texts, bool host_gaps = false) {
  std::vector<experiments::nccl_logs::FlightDump> dumps;
  for (const DumpText& text : texts) {
    const std::string file = fmt::format("trace_rank_{}", dumps.size());
    dumps.push_back(experiments::nccl_logs::parse_flight_dump(text.text(), file));
    dumps.back().rank = static_cast<std::uint32_t>(dumps.size() - 1);
  }
  experiments::nccl_logs::FlightOptions options;
  options.host_gaps = host_gaps;
  return experiments::nccl_logs::import_flight_dumps(dumps, options);
}

}  // namespace manyworlds::tests
