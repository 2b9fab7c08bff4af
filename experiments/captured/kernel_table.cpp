#include "experiments/captured/kernel_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/compute/measured.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::captured {
namespace {

using import::Node;

constexpr std::string_view kArgument = "argument_";
constexpr std::int64_t kMaxArgument = 4096;

/// Names of formulas, in the order of values_of(); arguments follow.
const std::vector<std::string>& names() {
  static const std::vector<std::string> all{"blocks",  "threads", "grid_x",  "grid_y",      "grid_z",
                                            "block_x", "block_y", "block_z", "shared_bytes"};
  return all;
}

/// Returns the number of an argument, from 1; 0 if the name is none.
std::int64_t argument_number(std::string_view name) {
  if (!name.starts_with(kArgument) || name.size() == kArgument.size() || name.size() > kArgument.size() + 4) return 0;
  std::int64_t number = 0;
  for (const char digit : name.substr(kArgument.size())) {
    if (digit < '0' || digit > '9') return 0;
    number = number * 10 + (digit - '0');
  }
  return std::min(number, kMaxArgument);
}

ExpressionName resolve(const std::string& name, const Node& at) {
  const bool is_known = std::find(names().begin(), names().end(), name) != names().end() || argument_number(name) > 0;
  if (!is_known) {
    std::vector<std::string> known = names();
    known.emplace_back("argument_1");
    at.fail(fmt::format("a launch has no '{}'{}", name.substr(0, 80), suggestion(name, known)));
  }
  return {name, ExpressionName::Kind::number, ""};
}

double product(const std::array<std::int64_t, 3>& of) {
  return static_cast<double>(of[0]) * static_cast<double>(of[1]) * static_cast<double>(of[2]);
}

/// The value of a name of a formula.
double value_of(const std::string& name, const Launch& launch, const std::vector<double>& arguments) {
  const auto found = std::find(names().begin(), names().end(), name);
  switch (found - names().begin()) {
    case 0:
      return product(launch.grid);
    case 1:
      return product(launch.grid) * product(launch.block);
    case 2:
    case 3:
    case 4:
      return static_cast<double>(launch.grid[static_cast<std::size_t>(found - names().begin() - 2)]);
    case 5:
    case 6:
    case 7:
      return static_cast<double>(launch.block[static_cast<std::size_t>(found - names().begin() - 5)]);
    case 8:
      return static_cast<double>(launch.shared_bytes);
    default:
      break;
  }
  const std::int64_t number = argument_number(name);
  if (number > launch.argument_count) return std::nan("");
  return arguments[launch.arguments + static_cast<std::size_t>(number) - 1];
}

constexpr double kMaxUs = 1e12, kMaxWhole = 1e15;

double evaluate(const Formula& formula, const Launch& launch, const std::vector<double>& arguments,
                const std::string& where, double most) {
  std::vector<double> values;
  for (const ExpressionName& name : formula.names()) {
    values.push_back(value_of(name.path, launch, arguments));
    if (std::isnan(values.back()))
      formula.fail(
          fmt::format("{} is no number in {}, which has {} arguments", name.path, where, launch.argument_count));
  }
  const double value = formula.value(values);
  if (!(value >= 0 && value <= most))
    formula.fail(fmt::format("is {} for {}; it must be from 0 to {:g}", value, where, most));
  return value;
}

std::int64_t whole(const Formula& formula, const Launch& launch, const std::vector<double>& arguments,
                   const std::string& where, double least = 0) {
  const double value = std::round(evaluate(formula, launch, arguments, where, kMaxWhole));
  if (value < least) formula.fail(fmt::format("is {} for {}; it must be at least {:g}", value, where, least));
  return static_cast<std::int64_t>(value);
}

const Node& mapping(const Node& node, const char* what) {
  if (node.kind != Node::Kind::mapping) node.fail(fmt::format("{} must be a mapping, not {}", what, describe(node)));
  return node;
}

void refuse_others(const Node& node, const std::vector<std::string>& known) {
  for (const import::Entry& entry : node.entries)
    if (std::find(known.begin(), known.end(), entry.key) == known.end())
      entry.value.fail(fmt::format("'{}' is no key here{}", entry.key.substr(0, 80), suggestion(entry.key, known)));
}

core::compute::Dtype dtype_of(const Node& node) {
  for (std::size_t i = 0; i < core::compute::kDtypeNames.size(); ++i)
    if (node.kind == Node::Kind::scalar && node.text == core::compute::kDtypeNames[i])
      return static_cast<core::compute::Dtype>(i);
  node.fail(
      fmt::format("'dtype' must be one of {}, not {}", fmt::join(core::compute::kDtypeNames, ", "), describe(node)));
}

}  // namespace

bool fits(std::string_view pattern, std::string_view text) {
  std::size_t at = 0, in = 0, star = std::string_view::npos, retry = 0;
  while (in < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++, retry = in;
    } else if (at < pattern.size() && pattern[at] == text[in]) {
      ++at, ++in;
    } else if (star != std::string_view::npos) {
      at = star + 1, in = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

KernelTable::KernelTable(std::string_view text, const std::string& name) {
  const Node root = import::parse_yaml(text, name);
  refuse_others(mapping(root, "a table of kernels"), {"gpu", "kernels"});
  if (const Node* gpu = root.find("gpu")) {
    if (gpu->kind != Node::Kind::scalar) gpu->fail("'gpu' must be a name of the catalog");
    gpu_ = gpu->text;
  }
  const Node* kernels = root.find("kernels");
  if (kernels == nullptr || kernels->kind != Node::Kind::sequence)
    root.fail("a table of kernels must have 'kernels', a list of entries");
  for (const Node& item : kernels->items) {
    refuse_others(mapping(item, "an entry"), {"kernel", "us", "bytes", "flops", "gemm", "dtype"});
    Entry& entry = entries_.emplace_back();
    const Node* pattern = item.find("kernel");
    if (pattern == nullptr || pattern->kind != Node::Kind::scalar || pattern->text.empty())
      item.fail("an entry must have 'kernel', a name in which * stands for anything");
    entry.pattern = pattern->text;
    for (const auto& [key, to] : {std::pair("us", &entry.us), {"bytes", &entry.bytes}, {"flops", &entry.flops}})
      if (const Node* formula = item.find(key)) to->emplace(*formula, resolve);
    if (const Node* gemm = item.find("gemm")) {
      if (gemm->kind != Node::Kind::sequence || gemm->items.size() < 3 || gemm->items.size() > 4)
        gemm->fail("'gemm' must be a list of formulas: m, n, k, and batch if it is not 1");
      for (const Node& extent : gemm->items) entry.gemm.emplace_back(extent, resolve);
    }
    if (const Node* dtype = item.find("dtype")) {
      if (entry.gemm.empty()) dtype->fail("'dtype' is of 'gemm', which the entry has not");
      entry.dtype = dtype_of(*dtype);
    }
    if (!entry.us && !entry.bytes && entry.gemm.empty())
      item.fail(fmt::format("an entry must have 'us', 'bytes' or 'gemm'{}",
                            entry.flops ? "; of 'flops' alone no time follows: give the shape of the product" : ""));
    if (entry.us && gpu_.empty()) item.fail("'us' are times on a GPU: name it, as 'gpu' of the table");
  }
}

const KernelTable::Entry* KernelTable::entry_of(std::uint32_t kernel, const std::string& name) const {
  if (known_.size() <= kernel) known_.resize(kernel + 1);
  if (!known_[kernel])
    known_[kernel] = static_cast<std::size_t>(
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& one) { return fits(one.pattern, name); }) -
        entries_.begin());
  return *known_[kernel] < entries_.size() ? &entries_[*known_[kernel]] : nullptr;
}

std::vector<std::string> KernelTable::unused() const {
  std::vector<std::string> patterns;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (std::find(known_.begin(), known_.end(), i) == known_.end()) patterns.push_back(entries_[i].pattern);
  return patterns;
}

std::optional<programs::KernelWork> KernelTable::work_of(std::uint32_t kernel, const std::string& name,
                                                         const Launch& launch, const std::vector<double>& arguments,
                                                         const std::string& where) const {
  const Entry* entry = entry_of(kernel, name);
  if (entry == nullptr) return std::nullopt;
  programs::KernelWork work;
  if (entry->us) work.measured_us = evaluate(*entry->us, launch, arguments, where, kMaxUs);
  if (entry->bytes)
    work.shape.bytes = whole(*entry->bytes, launch, arguments, where, entry->us || !entry->gemm.empty() ? 0 : 1);
  if (entry->flops) work.flops = whole(*entry->flops, launch, arguments, where);
  if (!entry->gemm.empty()) {
    programs::GemmShape& shape = work.shape.gemm.emplace();
    std::int64_t* const extents[] = {&shape.m, &shape.n, &shape.k, &shape.batch};
    for (std::size_t i = 0; i < entry->gemm.size(); ++i) {
      *extents[i] = whole(entry->gemm[i], launch, arguments, where, 1);
      if (*extents[i] > std::int64_t{1} << 31) entry->gemm[i].fail("is larger than any matrix");
    }
    const double operations = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                              static_cast<double>(shape.k) * static_cast<double>(shape.batch);
    if (operations > 1e18) entry->gemm[0].fail(fmt::format("is a product of more than 1e18 operations for {}", where));
    shape.dtype = entry->dtype;
  }
  return work;
}

}  // namespace manyworlds::experiments::captured
