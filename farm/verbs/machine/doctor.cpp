// `manyworlds doctor`: what of this machine can be used, and what to do about the rest.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/version.hpp"
#include "core/sharing/key.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/cli/parsing/option_values.hpp"
#include "farm/doctor/finding.hpp"
#include "farm/system/exit_code.hpp"

namespace manyworlds::farm::commands {

namespace {

using doctor::Finding;

bool serves(const Finding& finding) {
  return finding.state == Finding::State::ok || !finding.needed;
}

std::string as_text(const std::vector<Finding>& findings, bool usable) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<8} {:<14} {}\n", name_of(finding.state), finding.name, finding.found);
    if (!finding.advice.empty()) text += fmt::format("{:<24}-> {}\n", "", finding.advice);
  }
  return text + (usable ? "sweeps run on this machine\n" : "sweeps do not run on this machine as it is\n");
}

nlohmann::ordered_json as_json(const std::vector<Finding>& findings, bool usable) {
  nlohmann::ordered_json object{
      {"version", core::version()}, {"usable", usable}, {"findings", nlohmann::ordered_json::array()}};
  for (const Finding& finding : findings)
    object["findings"].push_back({{"name", finding.name},
                                  {"state", name_of(finding.state)},
                                  {"found", finding.found},
                                  {"advice", finding.advice},
                                  {"needed", finding.needed}});
  return object;
}

int run_doctor(const Invocation& invocation) {
  cxxopts::Options options("manyworlds doctor", "What of this machine, its MPI and its Slurm can be used.");
  options.add_options()("o,output", "the folder where runs are to be made",
                        cxxopts::value<std::string>()->default_value("runs"), "DIR")(
      "patience", "how long each of MPI's and Slurm's commands may take",
      cxxopts::value<std::string>()->default_value("20s"), "DURATION")("json", "the findings as JSON");
  // One of the two ranks that examine_mpi() starts; an option for nobody else.
  if (invocation.arguments.size() == 2 && invocation.arguments[0] == doctor::kRankOption)
    return doctor::meet_other_rank(parse_duration(invocation.arguments[1], invocation.arguments[0]));
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const std::chrono::seconds patience =
      std::max(parse_duration((*parsed)["patience"].as<std::string>(), "--patience"), std::chrono::seconds(1));

  std::vector<Finding> findings{
      {Finding::State::ok, "program",
       fmt::format("manyworlds {} (build {})", core::version(), core::sharing::build_fingerprint().substr(0, 12))}};
  const auto add = [&](const std::vector<Finding>& more) { findings.insert(findings.end(), more.begin(), more.end()); };
  add(doctor::examine_machine());
  add(doctor::examine_folders((*parsed)["output"].as<std::string>()));
  add({doctor::examine_mpi(patience)});
  add(doctor::examine_slurm(patience));
  const bool usable = std::all_of(findings.begin(), findings.end(), serves);
  std::cout << (parsed->count("json") > 0 ? as_json(findings, usable).dump(1) + "\n" : as_text(findings, usable));
  return usable ? kExitDone : kExitUnusable;
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor", .summary = "what of this machine can be used", .run = run_doctor};
}

}  // namespace manyworlds::farm::commands
