#include "farm/design/design_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "core/base/error.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/scalar.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::farm::design {
namespace {

namespace silicon = experiments::silicon;
using core::OptionInfo;
using experiments::import::Entry;
using experiments::import::Node;

constexpr double kStepsOfReals = 32;
constexpr double kStepsLimit = 1e6;
constexpr const char* kLike = "like";

const core::OptionTable<Money>& money_options() {
  using core::option;
  static const core::OptionTable<Money> table{
      option("years", &Money::years, "lifetime of a GPU", {0.01, 100}, "years"),
      option("usd_per_kwh", &Money::usd_per_kwh, "price of energy", {0, 1'000}, "USD/kWh"),
  };
  return table;
}

void need_mapping(const Node& node, const std::string& what) {
  if (node.kind != Node::Kind::mapping) node.fail(fmt::format("{} must be a mapping, not {}", what, describe(node)));
}

[[noreturn]] void fail_unknown(const Entry& entry, const std::vector<std::string>& known) {
  throw core::InputError(fmt::format("unknown key '{}'{}", entry.key, experiments::suggestion(entry.key, known)),
                         *entry.value.file, entry.line);
}

const OptionInfo* info_named(const std::vector<OptionInfo>& infos, const std::string& name) {
  const auto found =
      std::find_if(infos.begin(), infos.end(), [&](const OptionInfo& info) { return info.name == name; });
  return found == infos.end() ? nullptr : &*found;
}

std::vector<std::string> names_of(const std::vector<OptionInfo>& infos) {
  std::vector<std::string> names;
  for (const OptionInfo& info : infos) names.push_back(info.name);
  return names;
}

/// Sets the members of `to` that the mapping has; `also` are keys that somebody else reads. Returns the keys.
template <class T>
std::set<std::string> read_into(T& to, const core::OptionTable<T>& table, const Node& node, const std::string& section,
                                const std::vector<std::string>& also = {}) {
  need_mapping(node, fmt::format("'{}'", section));
  std::set<std::string> given;
  for (const Entry& entry : node.entries) {
    if (std::find(also.begin(), also.end(), entry.key) != also.end()) continue;
    const auto row = std::find_if(table.rows().begin(), table.rows().end(),
                                  [&](const auto& one) { return one.info.name == entry.key; });
    if (row == table.rows().end()) {
      std::vector<std::string> known = names_of(table.infos());
      known.insert(known.end(), also.begin(), also.end());
      fail_unknown(entry, known);
    }
    row->set(to, experiments::import::read_value(entry.value, row->info, section + "." + entry.key));
    given.insert(entry.key);
  }
  return given;
}

bool is_in_range(const OptionInfo& info) {
  const auto in = [&](double value) { return value >= info.minimum && value <= info.maximum; };
  if (const double* real = std::get_if<double>(&info.default_value)) return in(*real);
  const std::int64_t* integer = std::get_if<std::int64_t>(&info.default_value);
  return integer == nullptr || in(static_cast<double>(*integer));
}

void read_chip(DesignFile& file, const Node& node) {
  need_mapping(node, "'chip'");
  if (const Node* like = node.find(kLike)) {
    std::vector<std::string> names;
    for (const silicon::KnownChip& known : silicon::known_chips())
      if (!known.gpu.empty()) names.push_back(known.gpu);
    file.like = experiments::import::read_line(*like, "chip.like", names);
    const silicon::KnownChip& known = *silicon::known_chip_of(file.like);
    file.chip = known.chip;
    file.process = silicon::process_of(known.node);
  }
  const auto given = read_into(file.chip, silicon::chip_options(), node, "chip", {kLike});
  if (!file.like.empty()) return;
  for (const OptionInfo& info : silicon::chip_options().infos())
    if (!given.contains(info.name) && !is_in_range(info))
      node.fail(fmt::format("'chip.{}' is missing: {}; `like: a100_80` takes the units of A100 for those not given",
                            info.name, info.help));
}

void read_process(DesignFile& file, const Node& node) {
  need_mapping(node, "'process'");
  if (const Node* name = node.find("node"))
    file.process = silicon::process_of(experiments::import::read_line(*name, "process.node", silicon::node_names()));
  read_into(file.process, silicon::process_options(), node, "process");
}

double number_of(const Node& node, const OptionInfo& info, const std::string& key) {
  const core::OptionValue value = experiments::import::read_value(node, info, key);
  if (const double* real = std::get_if<double>(&value)) return *real;
  return static_cast<double>(std::get<std::int64_t>(value));
}

Dimension read_dimension(const Entry& entry, const OptionInfo& info) {
  const Node& node = entry.value;
  const std::string key = "search." + entry.key;
  if (node.kind != Node::Kind::sequence || node.items.size() < 2 || node.items.size() > 3)
    node.fail(fmt::format("'{}' must be [least, greatest] or [least, greatest, step], not {}", key, describe(node)));
  Dimension dimension{entry.key, number_of(node.items[0], info, key), number_of(node.items[1], info, key), 1};
  if (dimension.low >= dimension.high)
    node.fail(fmt::format("'{}' must rise, not go from {} to {}", key, dimension.low, dimension.high));
  const double width = dimension.high - dimension.low;
  if (info.kind == OptionInfo::Kind::real) dimension.step = width / kStepsOfReals;
  if (node.items.size() == 3) {
    OptionInfo step = info;
    step.minimum = info.kind == OptionInfo::Kind::integer ? 1 : width / kStepsLimit, step.maximum = width;
    dimension.step = number_of(node.items[2], step, key + "[2]");
  }
  if (width / dimension.step > kStepsLimit) node.fail(fmt::format("'{}' has more than {} values", key, kStepsLimit));
  return dimension;
}

void read_search(DesignFile& file, const Node& node) {
  need_mapping(node, "'search'");
  file.search_line = node.line;
  std::vector<OptionInfo> units;
  for (const OptionInfo& info : silicon::chip_options().infos())
    if (info.kind == OptionInfo::Kind::integer || info.kind == OptionInfo::Kind::real) units.push_back(info);
  for (const Entry& entry : node.entries) {
    const OptionInfo* info = info_named(units, entry.key);
    if (info == nullptr) fail_unknown(entry, names_of(units));
    file.search.push_back(read_dimension(entry, *info));
  }
  if (file.search.empty()) node.fail("'search' must have a unit, as in {sms: [64, 192]}");
}

}  // namespace

DesignFile parse_design(std::string_view text, const std::string& name) {
  const Node root = experiments::import::parse_yaml(text, name);
  need_mapping(root, "a design");
  static const std::vector<std::string> known{"name",   "job",    "chip",      "process",
                                              "budget", "search", "objective", "money"};
  for (const Entry& entry : root.entries)
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) fail_unknown(entry, known);
  DesignFile file;
  file.name = name;
  const Node *chip = root.find("chip"), *job = root.find("job");
  if (chip == nullptr) root.fail("'chip' is missing, the GPU by its units, as in `chip: {like: a100_80, sms: 144}`");
  if (job == nullptr) root.fail("'job' is missing, the path of the experiment that it trains with");
  const Node* title = root.find("name");
  file.title =
      title != nullptr ? experiments::import::read_line(*title, "name") : std::filesystem::path(name).stem().string();
  const std::string path = experiments::import::read_line(*job, "job");
  file.job = (std::filesystem::path(name).parent_path() / path).string();
  file.job_line = job->line;
  file.process = silicon::process_of("n7");
  read_chip(file, *chip);
  if (const Node* process = root.find("process")) read_process(file, *process);
  if (const Node* budget = root.find("budget")) read_into(file.budget, silicon::budget_options(), *budget, "budget");
  if (const Node* search = root.find("search")) read_search(file, *search);
  if (const Node* money = root.find("money")) read_into(file.money, money_options(), *money, "money");
  if (const Node* aim = root.find("objective"))
    file.aim = experiments::import::read_line(*aim, "objective", {"step_time", "usd_per_token"}) == "step_time"
                   ? Aim::step_time
                   : Aim::usd_per_token;
  return file;
}

silicon::Chip chip_at(const DesignFile& file, const Point& point) {
  silicon::Chip chip = file.chip;
  for (std::size_t i = 0; i < file.search.size(); ++i)
    for (const auto& row : silicon::chip_options().rows())
      if (row.info.name == file.search[i].name) {
        if (row.info.kind == OptionInfo::Kind::integer)
          row.set(chip, static_cast<std::int64_t>(point.at(i)));
        else
          row.set(chip, point.at(i));
      }
  return chip;
}

Point point_of(const DesignFile& file, const silicon::Chip& chip) {
  Point point;
  for (const Dimension& dimension : file.search)
    for (const auto& row : silicon::chip_options().rows())
      if (row.info.name == dimension.name) {
        const core::OptionValue value = row.get(chip);
        const double* real = std::get_if<double>(&value);
        point.push_back(real != nullptr ? *real : static_cast<double>(std::get<std::int64_t>(value)));
      }
  return point;
}

}  // namespace manyworlds::farm::design
