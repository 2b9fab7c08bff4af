#include "experiments/torchtitan/torchtitan.hpp"

#include <fmt/format.h>

#include "experiments/torchtitan/key_table.hpp"
#include "experiments/torchtitan/own_flavor.hpp"
#include "experiments/torchtitan/reader.hpp"
#include "experiments/tree/toml.hpp"

namespace manyworlds::experiments::jobs {

bool is_torchtitan_toml(const JobFile& file) {
  return file.ending() == ".toml";
}

Job read_torchtitan_toml(const JobFile& file, const JobOptions& options, const Catalog&) {
  const import::Node root = import::parse_toml(file.text, file.path);
  torchtitan::Version version;
  version.kind = "a TOML file of torchtitan";
  version.own = torchtitan::own_flavors_in(file.text, file.path);
  const std::vector<GivenKey> keys = flattened(root, torchtitan::known_keys());
  version.old_key = torchtitan::key_before_v0_2(keys);
  return torchtitan::Reader(keys, version, options).read();
}

}  // namespace manyworlds::experiments::jobs
