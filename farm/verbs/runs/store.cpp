// `manyworlds store [stats|verify|prune]`: the contents of the store, its integrity, and the eviction of old entries.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/plural.hpp"
#include "core/sharing/key.hpp"
#include "experiments/text/nearest.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/cli/parsing/option_values.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/size_text.hpp"
#include "io/log/store.hpp"
#include "io/log/store_maintenance.hpp"

namespace manyworlds::farm::commands {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string counted(std::uint64_t count, const std::string& what) {
  return fmt::format("{} {}", count, core::plural(count, what));
}

bool is_this_build(const io::StoredBuild& build) {
  return build.fingerprint == core::sharing::build_fingerprint();
}

int stats(const std::filesystem::path& directory, bool json) {
  const auto builds = io::stored_builds(directory);
  std::uint64_t bytes = 0;
  Json rows = Json::array();
  std::string text = fmt::format("{}\n", directory.string());
  for (const io::StoredBuild& build : builds) {
    bytes += build.bytes;
    const std::string used = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(build.last_used));
    rows.push_back({{"build", build.fingerprint},
                    {"this_build", is_this_build(build)},
                    {"segments", build.segments},
                    {"records", build.records},
                    {"bytes", build.bytes},
                    {"last_used", build.last_used}});
    const std::string name = build.fingerprint.empty() ? "unreadable" : build.fingerprint.substr(0, 16);
    text +=
        fmt::format("  build {}{}: {} in {}, {}, last used {}\n", name, is_this_build(build) ? " (this one)" : "",
                    counted(build.records, "record"), counted(build.segments, "segment"), size_text(build.bytes), used);
  }
  io::StoredBuild components;
  for (const io::StoredBuild& build : io::stored_builds(io::components_directory(directory))) {
    components.segments += build.segments;
    components.records += build.records;
    components.bytes += build.bytes;
  }
  bytes += components.bytes;
  if (components.segments > 0)
    text += fmt::format("  components of flows, of all builds: {} in {}, {}\n", counted(components.records, "record"),
                        counted(components.segments, "segment"), size_text(components.bytes));
  if (json)
    std::cout << text_of(
        {{"directory", directory.string()},
         {"bytes", bytes},
         {"builds", rows},
         {"components",
          {{"segments", components.segments}, {"records", components.records}, {"bytes", components.bytes}}}});
  else
    std::cout << text << fmt::format("{} in all, of {}\n", size_text(bytes), counted(builds.size(), "build"));
  return kExitDone;
}

int verify(const std::filesystem::path& directory, bool json) {
  io::StoreCheck check = io::verify_store(directory, core::sharing::build_fingerprint());
  io::StoreCheck components = io::verify_store(io::components_directory(directory), core::sharing::build_fingerprint());
  std::move(components.damaged.begin(), components.damaged.end(), std::back_inserter(check.damaged));
  std::move(components.torn.begin(), components.torn.end(), std::back_inserter(check.torn));
  const auto findings_json = [](const std::vector<io::StoreCheck::Finding>& findings) {
    Json rows = Json::array();
    for (const auto& [path, skipped, invalid_records, reason] : findings)
      rows.push_back({{"file", path},
                      {"places", skipped.count},
                      {"bytes", skipped.bytes},
                      {"first_byte", skipped.first_offset},
                      {"misfits", invalid_records.count},
                      {"reason", reason}});
    return rows;
  };
  const int code = check.damaged.empty() ? kExitDone : kExitFailed;
  if (json) {
    std::cout << text_of({{"directory", directory.string()},
                          {"segments", check.segments},
                          {"records", check.records},
                          {"bytes", check.bytes},
                          {"components", components.records},
                          {"damaged", findings_json(check.damaged)},
                          {"torn", findings_json(check.torn)}});
    return code;
  }
  for (const auto* findings : {&check.damaged, &check.torn})
    for (const auto& [path, skipped, invalid_records, reason] : *findings)
      std::cout << (reason.empty() ? skipped.describe(path) + invalid_records.describe(path) : reason + "\n");
  std::cout << fmt::format("{} whole in {}, {}", counted(check.records, "record"), counted(check.segments, "segment"),
                           size_text(check.bytes));
  if (components.segments > 0)
    std::cout << fmt::format(", and {} of flows in {}, {}", counted(components.records, "component"),
                             counted(components.segments, "segment"), size_text(components.bytes));
  if (!check.torn.empty()) std::cout << fmt::format("; {} unfinished", counted(check.torn.size(), "segment"));
  if (check.damaged.empty())
    std::cout << "; no damage\n";
  else
    std::cout << fmt::format("; {} damaged: what cannot be read is computed again, and deleting {} loses no more\n",
                             counted(check.damaged.size(), "segment"), check.damaged.size() == 1 ? "it" : "them");
  return code;
}

int prune(const std::filesystem::path& directory, std::uint64_t limit_bytes, bool json) {
  const auto [results, components] = io::prune_with_components(directory, limit_bytes);
  const auto json_of = [](const io::PruneResult& pruned) {
    return Json{{"segments", pruned.segments},     {"leftovers", pruned.unusable},
                {"bytes", pruned.bytes},           {"kept_segments", pruned.kept_segments},
                {"kept_bytes", pruned.kept_bytes}, {"left", pruned.unremovable}};
  };
  if (json) {
    Json told{{"directory", directory.string()}};
    told.update(json_of(results));
    told["components"] = json_of(components);
    std::cout << text_of(told);
    return kExitDone;
  }
  const auto tell = [](const io::PruneResult& pruned, const char* of) {
    std::cout << fmt::format("removed {}{} and {} without records, {}; {} in {} left\n",
                             counted(pruned.segments, "segment"), of, counted(pruned.unusable, "file"),
                             size_text(pruned.bytes), size_text(pruned.kept_bytes),
                             counted(pruned.kept_segments, "segment"));
    if (pruned.unremovable > 0)
      std::cout << fmt::format(
          "{} more would have been removed, but a run writes there now or this user may not remove them\n",
          counted(pruned.unremovable, "segment"));
  };
  tell(results, "");
  if (components.segments + components.kept_segments > 0) tell(components, " of components");
  return kExitDone;
}

int run_store(const Invocation& invocation) {
  cxxopts::Options options(
      "manyworlds store",
      "The contents of the store (stats), its integrity (verify), or the eviction of old entries (prune).");
  options.add_options()("what", "stats, verify or prune", cxxopts::value<std::string>()->default_value("stats"))(
      "store", "the folder; default: the user's own store", cxxopts::value<std::string>()->default_value(""), "DIR")(
      "limit", "of prune: how much may stay; what was used last stays",
      cxxopts::value<std::string>()->default_value(default_store_limit()), "SIZE")("json", "JSON output");
  options.parse_positional({"what"});
  options.positional_help("[stats|verify|prune]");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const std::string what = (*parsed)["what"].as<std::string>(), choice = (*parsed)["store"].as<std::string>();
  const auto limit = parse_size((*parsed)["limit"].as<std::string>(), "--limit");
  const bool json = parsed->count("json") > 0;
  if (what != "prune" && parsed->count("limit") > 0)
    throw core::InputError(fmt::format("--limit is a word of `store prune`, not of `store {}`", what));
  const auto directory = io::store_directory(choice);
  if (std::error_code ignored; !choice.empty() && !std::filesystem::is_directory(directory, ignored))
    throw core::InputError("no such folder; give one that a run has had as --store", "--store " + choice);
  if (what == "stats") return stats(directory, json);
  if (what == "verify") return verify(directory, json);
  if (what == "prune") return prune(directory, static_cast<std::uint64_t>(limit), json);
  throw core::InputError(fmt::format("store {}: it is stats, verify or prune{}", what,
                                     experiments::suggestion(what, {"stats", "verify", "prune"})));
}

}  // namespace

Command store_command() {
  return {.name = "store", .summary = "statistics, verification and pruning of the result store", .run = run_store};
}

}  // namespace manyworlds::farm::commands
