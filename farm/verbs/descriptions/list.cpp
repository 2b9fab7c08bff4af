// `manyworlds list [KIND]`: everything that can be named in a sweep.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "experiments/sweep/schema.hpp"
#include "experiments/text/nearest.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/system/exit_code.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm::commands {

namespace {

nlohmann::ordered_json as_json(const std::vector<experiments::ListEntry>& rows) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    nlohmann::ordered_json details = nlohmann::ordered_json::object();
    for (const auto& [name, text] : row.details) details[name] = text;
    all.push_back({{"name", row.name}, {"help", row.help}, {"details", details}});
  }
  return all;
}

std::string as_text(const std::vector<experiments::ListEntry>& rows, bool details) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.name.size());
  std::string text;
  for (const auto& row : rows) {
    text += fmt::format("  {:<{}}  {}\n", row.name, width, row.help);
    if (!details) continue;
    for (const auto& [name, text_value] : row.details)
      text += fmt::format("  {:<{}}    {}: {}\n", "", width, name, text_value);
  }
  return text;
}

/// Text is aligned left, numbers right.
std::string as_table(const std::vector<std::vector<std::string>>& lines) {
  std::vector<bool> left_aligned(lines.front().size(), false);
  for (std::size_t column = 0; column < left_aligned.size(); ++column)
    for (std::size_t line = 1; line < lines.size(); ++line) {
      const unsigned char first = static_cast<unsigned char>(lines[line][column].front());
      if (first != '-' && std::isdigit(first) == 0) left_aligned[column] = true;
    }
  return io::align_columns(lines, left_aligned, "  ");
}

/// Returns one entry of a kind, by any of its names.
std::vector<experiments::ListEntry> find_entry(const std::string& kind, const std::string& name,
                                               const experiments::Catalog& catalog) {
  std::vector<experiments::ListEntry> rows = experiments::list(kind, catalog);
  std::string catalog_name = name;
  if (!experiments::list_table(kind, catalog).empty()) {
    experiments::import::Node at;
    at.file = std::make_shared<const std::string>("list " + kind);
    catalog_name = catalog.find_named(kind, name, at).first;
  }
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(row.name);
  std::erase_if(rows, [&](const auto& row) { return row.name != catalog_name; });
  if (rows.empty())
    throw core::InputError(fmt::format("nothing is called '{}'{}", name, experiments::suggestion(name, names)),
                           "list " + kind);
  return rows;
}

int run_list(const Invocation& invocation) {
  cxxopts::Options options(
      "manyworlds list", "What may be named in a sweep; with KIND, side by side; with NAME, its figures and sources.");
  options.add_options()("kind", fmt::format("one of {}", fmt::join(experiments::listings(), ", ")),
                        cxxopts::value<std::string>())("name", "one of that kind", cxxopts::value<std::string>())(
      "details", "of a KIND, everything with its figures, options and sources")(
      "catalog", "a folder or file with more gpus, libraries, models, clusters and stacks",
      cxxopts::value<std::string>()->default_value(""), "DIR")("json", "JSON output, with all details");
  options.parse_positional({"kind", "name"});
  options.positional_help("[KIND [NAME]]");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const experiments::Catalog catalog((*parsed)["catalog"].as<std::string>());
  const bool one = parsed->count("kind") > 0, json = parsed->count("json") > 0;
  const bool details = parsed->count("details") > 0 || parsed->count("name") > 0;
  std::vector<std::string> kinds = experiments::listings();
  if (one) kinds = {(*parsed)["kind"].as<std::string>()};
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  std::string text;
  for (const auto& kind : kinds) {
    const auto rows = parsed->count("name") > 0 ? find_entry(kind, required(*parsed, "name"), catalog)
                                                : experiments::list(kind, catalog);
    const auto table = experiments::list_table(kind, catalog);
    all[kind] = as_json(rows);
    text += one ? "" : kind + "\n";
    text += one && !details && !table.empty() ? as_table(table) : as_text(rows, one);
  }
  std::cout << (json ? all.dump(1) + "\n" : text);
  return kExitDone;
}

}  // namespace

Command list_command() {
  return {.name = "list",
          .summary = "lists gpus, models, clusters, topologies and everything else a sweep may name",
          .run = run_list};
}

}  // namespace manyworlds::farm::commands
