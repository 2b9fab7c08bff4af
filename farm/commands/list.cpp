// `manyworlds list [KIND]`: what may be named in a sweep.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "experiments/schema.hpp"
#include "farm/commands/verbs.hpp"
#include "farm/exit_code.hpp"

namespace manyworlds::farm::commands {

namespace {

nlohmann::ordered_json as_json(const std::vector<experiments::Listed>& rows) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    nlohmann::ordered_json details = nlohmann::ordered_json::object();
    for (const auto& [name, text] : row.details) details[name] = text;
    all.push_back({{"name", row.name}, {"help", row.help}, {"details", details}});
  }
  return all;
}

std::string as_text(const std::vector<experiments::Listed>& rows, bool details) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.name.size());
  std::string text;
  for (const auto& row : rows) {
    text += fmt::format("  {:<{}}  {}\n", row.name, width, row.help);
    if (!details) continue;
    for (const auto& [name, figure] : row.details) text += fmt::format("  {:<{}}    {}: {}\n", "", width, name, figure);
  }
  return text;
}

}  // namespace

int run_list(const Invocation& invocation) {
  cxxopts::Options options("manyworlds list", "What may be named in a sweep; with KIND, also its figures and options.");
  options.add_options()("kind", fmt::format("one of {}", fmt::join(experiments::listings(), ", ")),
                        cxxopts::value<std::string>())(
      "catalog", "a folder with more gpus, models, clusters and stacks",
      cxxopts::value<std::string>()->default_value(""), "DIR")("json", "as JSON");
  options.parse_positional({"kind"});
  options.positional_help("[KIND]");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const experiments::Catalog catalog((*parsed)["catalog"].as<std::string>());
  const bool one = parsed->count("kind") > 0, json = parsed->count("json") > 0;
  std::vector<std::string> kinds = experiments::listings();
  if (one) kinds = {(*parsed)["kind"].as<std::string>()};
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  std::string text;
  for (const auto& kind : kinds) {
    const auto rows = experiments::list(kind, catalog);
    all[kind] = as_json(rows);
    text += (one ? "" : kind + "\n") + as_text(rows, one);
  }
  std::cout << (json ? all.dump(1) + "\n" : text);
  return kExitDone;
}

}  // namespace manyworlds::farm::commands
