// topology.conf(5) of Slurm:
//   SwitchName=spine-1 Switches=leaf-[1-2]        SwitchName=leaf-1 Nodes=node[01-16]      (topology/tree)
//   BlockName=rack11 Nodes=srv[1101-1108]         BlockSizes=8,16,32                        (topology/block)
#include "experiments/discovery/slurm_topology.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/error.hpp"
#include "experiments/clusters/node_list.hpp"
#include "experiments/discovery/lines.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::clusters {
namespace {

using core::InputError;

constexpr const char* kBetweenBlocks = "between-blocks";
using Keys = std::map<std::string, std::string>;  // in lower case

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

class TopologyReader {
 public:
  explicit TopologyReader(const std::string& file) : file_(file) {}

  void read_line(std::string_view line, int number) {
    line = line.substr(0, line.find('#'));
    if (joined_.empty()) line_ = number;
    const bool goes_on = line.ends_with('\\');
    joined_ += line.substr(0, line.size() - goes_on);
    if (goes_on) {
      joined_ += ' ';
      return;
    }
    const std::string whole = std::exchange(joined_, "");
    if (!words_of(whole).empty()) read_keys(keys_of(whole));
  }

  Fabric take() {
    if (!joined_.empty()) fail("ends in a line that goes on");
    if (fabric_.hosts.empty()) fail("has no node");
    for (const auto& [child, parent, line] : children_) {
      line_ = line;
      const auto found = number_.find(child);
      if (found == number_.end()) fail(fmt::format("names the switch '{}', which no line defines", child));
      fabric_.cables.push_back({found->second, parent, 0});
    }
    check_circles();
    if (blocks_ > 0) join_blocks();
    fabric_.format = blocks_ > 0 ? "slurm-block" : "slurm-tree";
    fabric_.counts_cables = false;
    return std::move(fabric_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(what, file_, line_); }

  Keys keys_of(std::string_view line) const {
    const std::vector<std::string> known{"SwitchName", "Switches", "Nodes", "LinkSpeed", "BlockName", "BlockSizes"};
    Keys keys;
    for (const std::string_view word : words_of(line)) {
      const std::size_t equals = word.find('=');
      if (equals == word.npos || equals == 0)
        fail(fmt::format("'{}' must be Key=value, such as SwitchName=leaf-1", word));
      const std::string key(word.substr(0, equals));
      const auto is_key = [&](const std::string& one) { return lower_case(one) == lower_case(key); };
      if (std::none_of(known.begin(), known.end(), is_key))
        fail(fmt::format("unknown key '{}'{}", key, suggestion(key, known)));
      if (!keys.emplace(lower_case(key), word.substr(equals + 1)).second) fail(fmt::format("gives '{}' twice", key));
    }
    return keys;
  }

  std::vector<std::string> names_in(const std::string& list) const {
    try {
      return expand_node_list(list);
    } catch (const InputError& error) {
      fail(error.what());
    }
  }

  std::uint32_t add_switch(const std::string& name) {
    if (fabric_.switches.size() == kMaxSwitches) fail("is one more switch than any cluster has");
    const auto number = static_cast<std::uint32_t>(fabric_.switches.size());
    if (name.empty()) fail("has an empty name");
    if (!number_.emplace(name, number).second) fail(fmt::format("defines '{}' again", name));
    fabric_.switches.push_back({name});
    return number;
  }

  void add_hosts(const std::string& list, std::uint32_t leaf) {
    for (const std::string& name : names_in(list)) {
      if (!hosts_.insert(name).second) fail(fmt::format("node '{}' is on another switch already", name));
      if (fabric_.hosts.size() == kMaxHosts) fail("has one more node than any cluster");
      fabric_.hosts.push_back({name, {{"", leaf, 0, 0}}});
    }
  }

  void read_keys(const Keys& keys) {
    if (const auto name = keys.find("switchname"); name != keys.end()) {
      if (blocks_ > 0) fail("is a switch among blocks; give one kind");
      for (const std::string& one : names_in(name->second)) {
        const std::uint32_t number = add_switch(one);
        const auto nodes = keys.find("nodes"), switches = keys.find("switches");
        if (nodes == keys.end() && switches == keys.end())
          fail(fmt::format("switch '{}' needs Nodes or Switches", one));
        if (nodes != keys.end()) add_hosts(nodes->second, number);
        if (switches != keys.end())
          for (const std::string& child : names_in(switches->second)) children_.emplace_back(child, number, line_);
      }
      has_switches_ = true;
      return;
    }
    if (const auto name = keys.find("blockname"); name != keys.end()) {
      if (has_switches_) fail("is a block among switches; give one kind");
      const auto nodes = keys.find("nodes");
      if (nodes == keys.end()) fail(fmt::format("block '{}' needs Nodes", name->second));
      add_hosts(nodes->second, add_switch(name->second));
      ++blocks_;
      return;
    }
    if (keys.count("blocksizes") == 0) fail("must begin with SwitchName, BlockName or BlockSizes");
  }

  /// Refuses a switch that is above itself.
  void check_circles() {
    std::vector<std::int64_t> open(fabric_.switches.size(), 0);  // switches below that are not done
    std::vector<std::vector<std::uint32_t>> above(fabric_.switches.size());
    for (const Cable& cable : fabric_.cables) ++open[cable.b], above[cable.a].push_back(cable.b);
    std::vector<std::uint32_t> done;
    for (std::uint32_t i = 0; i < open.size(); ++i)
      if (open[i] == 0) done.push_back(i);
    for (std::size_t next = 0; next < done.size(); ++next)
      for (const std::uint32_t upper : above[done[next]])
        if (--open[upper] == 0) done.push_back(upper);
    for (std::uint32_t i = 0; i < open.size(); ++i)
      if (open[i] > 0) fail(fmt::format("switch '{}' is below itself", fabric_.switches[i].name));
  }

  void join_blocks() {
    const std::uint32_t top = add_switch(kBetweenBlocks);
    for (std::uint32_t block = 0; block < top; ++block) fabric_.cables.push_back({block, top, 0});
    fabric_.notes.push_back(fmt::format(
        "blocks are taken for leaf switches below one switch, '{}', which the file does not have; where a block "
        "is one NVLink domain, describe the domain as a node (gb200_nvl72)",
        kBetweenBlocks));
  }

  std::string file_, joined_;
  int line_ = 1;
  bool has_switches_ = false;
  std::int64_t blocks_ = 0;
  Fabric fabric_;
  std::map<std::string, std::uint32_t> number_;
  std::set<std::string> hosts_;
  std::vector<std::tuple<std::string, std::uint32_t, int>> children_;  // name, switch above, line
};

}  // namespace

bool is_slurm_topology(std::string_view text) {
  const std::string lower = lower_case(text.substr(0, std::min<std::size_t>(text.size(), 1u << 16)));
  for (const char* key : {"switchname=", "blockname="})
    for (std::size_t at = lower.find(key); at != std::string::npos; at = lower.find(key, at + 1))
      if (at == 0 || lower[at - 1] == '\n' || lower[at - 1] == ' ' || lower[at - 1] == '\t') return true;
  return false;
}

Fabric parse_slurm_topology(std::string_view text, const std::string& name) {
  import::check_text(text, name);
  TopologyReader reader(name);
  for_each_line(text, [&](std::string_view line, int number) { reader.read_line(line, number); });
  Fabric fabric = reader.take();
  fabric.nics_per_host = 1;  // hosts stay in the order of the file, which is that of the tree
  return fabric;
}

}  // namespace manyworlds::experiments::clusters
